// Package attention has gatewayctl's list of all that waits for a person.
package attention

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/keys"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

// Waiting are the commands below attention.
type Waiting struct {
	List  attentionList  `cmd:"" default:"withargs" help:"List what waits for a person, oldest first; exit 3 if any."`
	Close attentionClose `cmd:"" help:"Close the conflicts and dead letters of a transaction that were dealt with."`
}

// ErrWaiting ends the command with ExitWaiting.
var ErrWaiting = errors.New("this waits for a person: first do what docs/operations.md says about each line, then " +
	"run its command")

// The kinds of things that wait for a person.
const (
	waitsUnknown     = "unknown-outcome"
	waitsConflict    = "conflict"
	waitsDeadLetter  = "dead-letter"
	waitsEndpoint    = "endpoint-disabled"
	waitsLookups     = "lookups-fail"
	waitsCredentials = "credentials"
	waitsKey         = "key-due"
	waitsCallback    = "callback-lost"
)

// View is one thing that waits for a person, and the command that ends it.
type View struct {
	Since    time.Time `json:"since,omitzero" col:"SINCE"`
	What     string    `json:"what" col:"WHAT"`
	Merchant string    `json:"merchant,omitempty" col:"MERCHANT"`
	Subject  string    `json:"subject" col:"SUBJECT"`
	Detail   string    `json:"detail,omitempty" col:"DETAIL"`
	Command  string    `json:"command" col:"COMMAND"`
}

type attention struct {
	*session.Session
	views []View
	// closed is when people closed transactions and changed the operators' credentials, by the audit record's subject.
	closed      map[string]time.Time
	callbacks   *keyring.Ring           // nil without a key
	deadLetters map[string][]deadLetter // by the merchant's name
	parked      map[endpointKey]int
	accounts    map[operator.Pin]*accountUse
}

// add adds a line. command has the arguments of the command that ends it.
func (a *attention) add(v View, command ...string) {
	v.Command = a.Command(command...)
	a.views = append(a.views, v)
}

// closeAction is the action of an audit record that closes a transaction's conflicts and dead letters.
const closeAction = "close attention"

func closeSubject(e *ledger.Entry) string { return e.Key.String() + " of " + e.Merchant.Name }

type endpointKey struct{ merchantID, url string }

// deadLetter is a dead letter of a transaction, with the time of its status.
type deadLetter struct {
	id string
	at time.Time
}

// accountUse is what the stored transactions show about an account.
type accountUse struct {
	acceptedAt time.Time   // the last call that the operator did not reject, or change of the credentials
	rejected   []time.Time // the calls that it rejected because of our credentials
	workedAt   time.Time   // the last proof that the operator processes calls: one that it decided, or a final status
	failed     []time.Time // the calls that it did not process
	live       int         // as operator route set counts them
	oldest     *ledger.Entry
}

// attentionDays is how many days of transactions are read for conflicts and dead letters without --since.
const attentionDays = 14

type attentionList struct {
	Since  session.UTCDay `placeholder:"DAY" help:"Read transactions from this UTC day, yesterday or today on."`
	KeyAge time.Duration  `default:"8760h" help:"The age at which a key ring is due for a new key."`
	session.WatchFlag
	NoLookup bool          `help:"Look up no payment: failing lookups are then not in the list."`
	Timeout  time.Duration `default:"10s" help:"The longest wait for an operator's response."`
}

// Run lists what waits, over all merchants (decision "attention"). It changes nothing, and leaves out everything that
// the gateway ends by itself.
func (c *attentionList) Run(s *session.Session, profiles []*merchant.Profile, a *attention) error {
	since := cmp.Or(c.Since.Time, s.Now().UTC().Truncate(session.Day).Add(-attentionDays*session.Day))
	for e, err := range entries.Open(s, profiles, since) {
		if err != nil {
			return err
		}
		a.addEntry(e)
	}
	a.addDeadLetters()
	if err := errors.Join(a.addEndpoints(profiles), c.addOperators(a, profiles), c.addKeys(a)); err != nil {
		return err
	}
	slices.SortFunc(a.views, func(x, y View) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Subject, y.Subject), cmp.Compare(x.What, y.What))
	})
	if len(a.views) == 0 {
		return session.ShowList(s, a.views)
	}
	return errors.Join(session.ShowList(s, a.views), ErrWaiting)
}

// ProvideAttention reads what people closed, and the ring of callback keys, for the Run methods below attention (kong's
// provider). A change whose audit record could not be completed counts as not made.
func (Waiting) ProvideAttention(s *session.Session) (*attention, error) {
	a := &attention{
		Session: s, deadLetters: map[string][]deadLetter{}, parked: map[endpointKey]int{},
		accounts: map[operator.Pin]*accountUse{}, closed: map[string]time.Time{},
	}
	records, err := s.AuditedChanges()
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.Outcome == auditlog.OutcomeDone && (r.What == closeAction || r.Subject == accounts.CredentialsSubject) {
			a.closed[r.Subject] = session.Latest(a.closed[r.Subject], r.At)
		}
	}
	a.callbacks, err = keys.RingArgument{Ring: keys.Callbacks}.Parse(s)
	return a, err
}

type attentionClose struct {
	Kind string `arg:"" enum:"pay,charge,sms" help:"pay, charge or sms."`
	ID   string `arg:"" help:"The order_id, or the id of the charge or SMS."`
}

// ClosedView is what attention close closed.
type ClosedView struct {
	Subject  string `json:"subject" row:"subject"`
	Merchant string `json:"merchant" row:"merchant"`
	Closed   string `json:"closed" row:"closed"`
}

// Run closes what was dealt with outside the gateway. Only the audit record keeps it: the transaction does not change,
// and a later conflict or dead letter is listed again.
func (c *attentionClose) Run(s *session.Session, a *attention) error {
	e, err := entries.Find(s, c.ID, ledger.Kind(c.Kind))
	if err != nil {
		return err
	}
	closedAt := a.closed[closeSubject(e)]
	var parts []string
	if conflicts := openConflicts(e, closedAt); len(conflicts) > 0 {
		parts = append(parts, output.Plural(len(conflicts), "conflict"))
	}
	if dead := openDeadLetters(e, closedAt); len(dead) > 0 {
		parts = append(parts, output.Plural(len(dead), "dead letter"))
	}
	if a.lostCallback(e, closedAt) {
		parts = append(parts, output.Plural(1, "lost callback"))
	}
	if len(parts) == 0 {
		return fmt.Errorf("%s has no open conflict and no open dead letter: gatewayctl attention lists all", c.ID)
	}
	slices.Sort(parts) // by their numbers
	view := ClosedView{Subject: e.Key.String(), Merchant: e.Merchant.Name, Closed: output.JoinComma(parts)}
	return s.ExecuteAndShow(closeAction, closeSubject(e), func() (string, error) { return view.Closed, nil },
		func() error { return s.ShowView(view) })
}
