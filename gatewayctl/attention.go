package gatewayctl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

type attentionCommands struct {
	List  attentionList  `cmd:"" default:"withargs" help:"List what waits for a person, oldest first; exit 3 if any."`
	Close attentionClose `cmd:"" help:"Close the conflicts and dead letters of a transaction that were dealt with."`
}

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

// attentionView is one thing that waits for a person, and the command that ends it.
type attentionView struct {
	Since    time.Time `json:"since,omitzero" col:"SINCE"`
	What     string    `json:"what" col:"WHAT"`
	Merchant string    `json:"merchant,omitempty" col:"MERCHANT"`
	Subject  string    `json:"subject" col:"SUBJECT"`
	Detail   string    `json:"detail,omitempty" col:"DETAIL"`
	Command  string    `json:"command" col:"COMMAND"`
}

// errWaiting ends the command with ExitWaiting.
var errWaiting = errors.New("this waits for a person: run the command of each line")

// attentionDays is how many days of transactions are read for conflicts and dead letters without --since.
const attentionDays = 14

type attentionList struct {
	Since    utcDay        `placeholder:"DAY" help:"Read transactions from this UTC day, yesterday or today on."`
	KeyAge   time.Duration `default:"8760h" help:"The age at which a key ring is due for a new key."`
	NoLookup bool          `help:"Look up no payment: failing lookups are then not in the list."`
	Timeout  time.Duration `default:"10s" help:"The longest wait for an operator's response."`
}

// Run lists what waits, over all merchants (decision "attention"). It changes nothing, and leaves out everything that
// the gateway ends by itself.
func (c *attentionList) Run(s *session, merchants []*merchant.Profile, a *attention) error {
	since := cmp.Or(c.Since.Time, s.Now().UTC().Truncate(day).Add(-attentionDays*day))
	for e, err := range openEntries(s, merchants, since) {
		if err != nil {
			return err
		}
		a.addEntry(e)
	}
	a.addDeadLetters()
	if err := errors.Join(a.addEndpoints(merchants), c.addOperators(a, merchants), c.addKeys(a)); err != nil {
		return err
	}
	slices.SortFunc(a.views, func(x, y attentionView) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Subject, y.Subject), cmp.Compare(x.What, y.What))
	})
	if len(a.views) == 0 {
		return showList(s, a.views)
	}
	return errors.Join(showList(s, a.views), errWaiting)
}

type attention struct {
	*session
	views []attentionView
	// closed is when people closed transactions and changed the operators' credentials, by the audit record's subject.
	closed      map[string]time.Time
	callbacks   *keyring.Ring           // nil without a key
	deadLetters map[string][]deadLetter // by the merchant's name
	parked      map[endpointKey]int
	accounts    map[accountRef]*accountUse
}

// add adds a line. command has the arguments of the command that ends it.
func (a *attention) add(v attentionView, command ...string) {
	v.Command = a.toolCommand(command...)
	a.views = append(a.views, v)
}

// ProvideAttention reads what people closed, and the ring of callback keys, for the Run methods below attention (kong's
// provider). A change whose audit record could not be completed counts as not made.
func (attentionCommands) ProvideAttention(s *session) (*attention, error) {
	a := &attention{
		session: s, deadLetters: map[string][]deadLetter{}, parked: map[endpointKey]int{},
		accounts: map[accountRef]*accountUse{}, closed: map[string]time.Time{},
	}
	records, err := s.auditedChanges()
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.Outcome == OutcomeDone && (r.What == closeAction || r.Subject == credentialsSubject) {
			a.closed[r.Subject] = latestTime(a.closed[r.Subject], r.At)
		}
	}
	a.callbacks, err = ringArgument{ringCallbacks}.parse(s)
	return a, err
}

func latestTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// confirmArguments adds the flags of a change to a command's arguments.
func confirmArguments(arguments ...string) []string {
	return append(arguments, "--yes", "--reason", "REASON")
}

// closeAction is the action of an audit record that closes a transaction's conflicts and dead letters.
const closeAction = "close attention"

func closeSubject(e *ledger.Entry) string { return e.Key.String() + " of " + e.Merchant }

// credentialsSubject is the subject of the audit records of changed operators' credentials.
const credentialsSubject = "operators"

type attentionClose struct {
	Kind string `arg:"" enum:"pay,charge,sms" help:"pay, charge or sms."`
	ID   string `arg:"" help:"The order_id, or the id of the charge or SMS."`
}

type closedView struct {
	Subject  string `json:"subject" row:"subject"`
	Merchant string `json:"merchant" row:"merchant"`
	Closed   string `json:"closed" row:"closed"`
}

// Run closes what was dealt with outside the gateway. Only the audit record keeps it: the transaction does not change,
// and a later conflict or dead letter is listed again.
func (c *attentionClose) Run(s *session, a *attention) error {
	e, err := findEntry(s, c.ID, ledger.Kind(c.Kind))
	if err != nil {
		return err
	}
	closedAt := a.closed[closeSubject(e)]
	var parts []string
	if conflicts := openConflicts(e, closedAt); len(conflicts) > 0 {
		parts = append(parts, plural(len(conflicts), "conflict"))
	}
	if dead := openDeadLetters(e, closedAt); len(dead) > 0 {
		parts = append(parts, plural(len(dead), "dead letter"))
	}
	if a.lostCallback(e, closedAt) {
		parts = append(parts, plural(1, "lost callback"))
	}
	if len(parts) == 0 {
		return fmt.Errorf("%s has no open conflict and no open dead letter: gatewayctl attention lists all", c.ID)
	}
	slices.Sort(parts) // by their numbers
	view := closedView{Subject: e.Key.String(), Merchant: e.Merchant, Closed: joinComma(parts)}
	return s.executeAndShow(closeAction, closeSubject(e), func() (string, error) { return view.Closed, nil },
		func() error { return s.showView(view) })
}
