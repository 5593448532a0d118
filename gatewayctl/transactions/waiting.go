package transactions

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

type unknownWaiting struct {
	Account string `arg:"" optional:"" help:"A platform, or platform/account; all accounts if none is given."`
}

// WaitingView is what waits for the operator of an account: transactions without a known outcome or final status.
type WaitingView struct {
	Platform string      `json:"platform" col:"PLATFORM"`
	Account  string      `json:"account" col:"ACCOUNT"`
	Kind     ledger.Kind `json:"kind" col:"KIND"`
	Waiting  int         `json:"waiting" col:"WAITING"`
	Unknown  int         `json:"unknown" col:"UNKNOWN"` // of these
	// The numbers by age; each is less than this age and not less than the one before.
	Minute     int       `json:"under_minute" col:"< 1 MIN"`
	TenMinutes int       `json:"under_ten_minutes" col:"< 10 MIN"`
	Hour       int       `json:"under_hour" col:"< 1 H"`
	Day        int       `json:"under_day" col:"< 1 DAY"`
	Older      int       `json:"older" col:"OLDER"`
	Oldest     time.Time `json:"oldest" col:"OLDEST"`
	NextLookup time.Time `json:"next_lookup_at,omitzero" col:"NEXT LOOKUP"` // the earliest one
}

// Run counts what the due index has, by account and age. It calls no operator.
func (c *unknownWaiting) Run(s *session.Session) error {
	if err := s.OpenStores(); err != nil {
		return err
	}
	views := map[string]*WaitingView{}
	for e, err := range waitingFor(s, c.Account) {
		if err != nil {
			return err
		}
		pin := accounts.AccountKey(operator.PinOf(e))
		key := pin.String() + " " + string(e.Kind)
		if views[key] == nil {
			views[key] = &WaitingView{Platform: pin.Platform, Account: pin.Account, Kind: e.Kind}
		}
		views[key].add(e, s.Now())
	}
	sorted := slices.SortedFunc(maps.Values(views), func(a, b *WaitingView) int {
		return cmp.Or(a.Oldest.Compare(b.Oldest), cmp.Compare(a.Platform, b.Platform),
			cmp.Compare(a.Account, b.Account), cmp.Compare(a.Kind, b.Kind))
	})
	return session.ShowList(s, output.MapAll(sorted, func(v *WaitingView) WaitingView { return *v }))
}

// add counts one entry.
func (v *WaitingView) add(e *ledger.Entry, now time.Time) {
	v.Waiting++
	if e.OutcomeUncertain(now) {
		v.Unknown++
	}
	switch age := now.Sub(e.CreatedAt); {
	case age < time.Minute:
		v.Minute++
	case age < 10*time.Minute:
		v.TenMinutes++
	case age < time.Hour:
		v.Hour++
	case age < session.Day:
		v.Day++
	default:
		v.Older++
	}
	if v.Oldest.IsZero() || e.CreatedAt.Before(v.Oldest) {
		v.Oldest = e.CreatedAt
	}
	next := entries.HistoryOf(e, now).NextLookup
	if !next.IsZero() && (v.NextLookup.IsZero() || next.Before(v.NextLookup)) {
		v.NextLookup = next
	}
}

// waitingFor reads the entries that wait for an operator's status, by their account: of a platform,
// of platform/account, or each for "". They are in the due index.
func waitingFor(s *session.Session, account string) func(yield func(*ledger.Entry, error) bool) {
	platform, id, hasID := strings.Cut(strings.ToLower(account), "/")
	return func(yield func(*ledger.Entry, error) bool) {
		for e, err := range entries.Due(s) {
			if err == nil {
				pin := accounts.AccountKey(operator.PinOf(e))
				isOther := account != "" && pin.Platform != platform || hasID && strings.ToLower(pin.Account) != id
				if isOther || !waits(e, s.Now()) {
					continue
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// waits reports whether an entry waits for the operator: its outcome is uncertain, or a payment's status is not final.
func waits(e *ledger.Entry, now time.Time) bool {
	if e.Unknowable() || e.Leased(now) {
		return false
	}
	isPending := e.Kind == ledger.Payment && !e.StatusFinal() && !e.NotApplied()
	return isPending || e.OutcomeUncertain(now) || e.Claim.Status != "" && !e.StatusFinal()
}

type unknownLookup struct {
	Account string        `arg:"" help:"A platform, or platform/account."`
	AtMost  int           `default:"200" placeholder:"COUNT" help:"The most payments to look up, the oldest first."`
	Timeout time.Duration `default:"10s" help:"The longest wait for one response of the operator."`
}

// LookupView is what a lookup of all that waits found.
type LookupView struct {
	Account  string `json:"account" row:"account"`
	Payments int    `json:"payments" row:"payments that wait"`
	LookedUp int    `json:"looked_up" row:"looked up"`
	Ended    int    `json:"ended" row:"ended"`
	Open     int    `json:"still_open" row:"still open"`
	// NoLookup counts what waits and has no lookup.
	NoLookup int       `json:"without_lookup" row:"without a lookup"`
	Oldest   time.Time `json:"oldest,omitzero" row:"oldest"`
	Error    string    `json:"error_of_operator,omitempty" row:"operator"`
}

// maxSilentLookups is how many lookups in a row may get no response. The operator is then still down.
const maxSilentLookups = 3

// Run looks up now what waits at an account or a platform, within the rate of each account (decision "lookup-rate"). It
// applies each response as unknown resolve does. Its dry run calls no operator.
func (c *unknownLookup) Run(s *session.Session) error {
	if err := s.OpenStores(); err != nil {
		return err
	}
	view := LookupView{Account: c.Account}
	var found []*ledger.Entry
	for e, err := range waitingFor(s, c.Account) {
		switch {
		case err != nil:
			return err
		case entries.ComesByLookup(e):
			found = append(found, e)
		default:
			view.NoLookup++
		}
	}
	slices.SortFunc(found, func(a, b *ledger.Entry) int { return a.CreatedAt.Compare(b.CreatedAt) })
	if view.Payments = len(found); view.Payments == 0 {
		return fmt.Errorf("no payment with a status lookup waits at %s: gatewayctl unknown waiting lists what waits",
			c.Account)
	}
	view.Oldest = found[0].CreatedAt
	found = found[:min(len(found), max(c.AtMost, 0))]
	if !s.Yes {
		view.LookedUp = len(found)
	}
	return s.ExecuteAndShow("look up what waits", c.Account, func() (string, error) {
		if !s.Yes {
			return fmt.Sprintf("%s of %d that wait", output.Plural(len(found), "payment"), view.Payments), nil
		}
		err := c.lookUp(s, found, &view)
		return fmt.Sprintf("%d looked up, %d ended", view.LookedUp, view.Ended), err
	}, func() error { return s.ShowView(view) })
}

// lookUp looks up the entries one after the other. It ends early if the operator does not respond.
func (c *unknownLookup) lookUp(s *session.Session, found []*ledger.Entry, view *LookupView) error {
	current, err := session.ReadSecret(s, s.OperatorSecret, "OPERATOR_CREDENTIALS_SECRET")
	if err != nil {
		return err
	}
	confirmer := accounts.NewConfirmer(s, accounts.NewDirectory(s, current.Value), c.Timeout)
	silent := 0
	for _, e := range found {
		if err := s.Err(); err != nil {
			return err
		}
		view.LookedUp++
		change, err := lookUpResolution(s, e, confirmer)
		if err == nil {
			_, err = entries.Resolve(s, e.Key, change)
		}
		switch {
		case err == nil:
			view.Ended++
			silent = 0
		case errors.Is(err, errNoResponse):
			view.Open++
			view.Error = err.Error()
			if silent++; silent == maxSilentLookups {
				return fmt.Errorf("%d lookups in a row got no response: %w", silent, err)
			}
		default: // not final yet
			view.Open++
			silent = 0
		}
	}
	return nil
}
