package control

import (
	"errors"
	"fmt"
	"slices"
	"time"

	ledgerdynamo "mobilegateway/shared/ledger/dynamo"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/gateway"
	"mobilegateway/shared/settlement"
)

type unknownCommands struct {
	List    unknownList    `cmd:"" help:"List what is unknown, the oldest first."`
	Resolve unknownResolve `cmd:"" help:"Settle one: by asking its operator, or by hand with --as."`
}

type unknownList struct{}

// unknownView is an entry that nobody knows the outcome of.
type unknownView struct {
	entryView
	Age       string `json:"age"`
	Claimed   string `json:"claimed,omitempty"`
	MayLookup bool   `json:"may_look_up"` // by resolve; else by hand
}

// Run lists the entries of the due index that are unknown: each has a time at which it is looked at again.
func (c *unknownList) Run(s *session) error {
	stores, err := s.open()
	if err != nil {
		return err
	}
	views := []unknownView{}
	for shard := range ledger.DueShards {
		keys, err := stores.Ledger.DueKeys(s, shard, s.Now().Add(365*day), ledgerdynamo.MaxPage)
		if err != nil {
			return err
		}
		if len(keys) == ledgerdynamo.MaxPage {
			fmt.Fprintf(s.Notes, "Part %d of the index has more than %s: later ones are not looked at.\n", shard, plural(len(keys), "entry"))
		}
		entries, err := s.entries(keys)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if isUnknown(e, s.Now()) {
				views = append(views, c.view(e, s.Now()))
			}
		}
	}
	slices.SortFunc(views, func(a, b unknownView) int { return a.CreatedAt.Compare(b.CreatedAt) })
	rows := table{{"CREATED", "AGE", "KIND", "ID", "MERCHANT", "AMOUNT", "CURRENCY", "OPERATOR", "CLAIMED", "LOOKUP"}}
	for _, v := range views {
		rows = append(rows, []string{moment(v.CreatedAt), v.Age, string(v.Kind), v.ID, v.Merchant, v.Amount, v.Currency, v.Operator,
			v.Claimed, fmt.Sprint(v.MayLookup)})
	}
	return s.show(views, rows)
}

func (c *unknownList) view(e *ledger.Entry, now time.Time) unknownView {
	row, _ := operator.Find(e.Operator)
	return unknownView{
		entryView: entryOf(e), Age: now.Sub(e.CreatedAt).Truncate(time.Second).String(), Claimed: string(e.Claim.Status),
		MayLookup: e.Kind == ledger.Payment && row.StatusLookup,
	}
}

// isUnknown tells whether nobody knows what came of an entry: its call's outcome is unknown, its lease has lapsed, or a
// claim stands that getStatus has not confirmed.
func isUnknown(e *ledger.Entry, now time.Time) bool {
	return !e.Settled() && (e.State == ledger.Unknown || e.Lapsed(now) || e.Claim.Status != "")
}

type unknownResolve struct {
	Kind    string        `arg:"" enum:"pay,charge" help:"pay or charge."`
	ID      string        `arg:"" help:"The order_id, or the charge's id."`
	As      string        `enum:"lookup,successful,failed,cancelled,refused" default:"lookup" help:"lookup asks the operator; a payment by hand: successful, failed, cancelled; a charge: refused (certainly not applied)."`
	Timeout time.Duration `default:"10s" help:"The longest wait for the operator's answer."`
}

// sourceHand is the source of a resolution by a person, whose reason is in the audit record.
const sourceHand = "person"

// Run settles the entry.
func (c *unknownResolve) Run(s *session) error {
	stores, err := s.open()
	if err != nil {
		return err
	}
	key := ledger.Key{Kind: ledger.Kind(c.Kind), ID: c.ID}
	e, err := stores.Ledger.Get(s, key)
	if err != nil {
		return err
	}
	if e == nil {
		return fmt.Errorf("there is no %s %s", c.Kind, c.ID)
	}
	if !isUnknown(e, s.Now()) && !(e.Kind == ledger.Payment && e.Status == ledger.Pending) {
		return fmt.Errorf("%s is not unknown: it is %s", c.ID, or(string(e.Status), string(e.State)))
	}
	change, err := c.change(s, e)
	if err != nil {
		return err
	}
	var settled *ledger.Entry
	err = s.hand.act(Act{"resolve as " + c.As, key.String() + " of " + e.Merchant}, func() (string, error) {
		settled, err = s.hand.changeEntry(key, change)
		if err != nil {
			return "nothing", err
		}
		return string(settled.State) + " " + string(settled.Status), nil
	})
	if err != nil {
		return err
	}
	return s.show(historyOf(settled), factRows(entryOf(settled)))
}

// change is what settles the entry; it is applied to the entry as it stands then.
func (c *unknownResolve) change(s *session, e *ledger.Entry) (func(*ledger.Entry) error, error) {
	switch {
	case c.As == "refused" && e.Kind == ledger.Charge:
		return c.refuse(s), nil
	case c.As == "refused" || e.Kind != ledger.Payment:
		return nil, usage("a %s cannot be resolved as %s", e.Kind, c.As)
	}
	directory, err := c.directory(s)
	if err != nil {
		return nil, err
	}
	desk := &settlement.Desk{Operators: directory, Timeout: c.Timeout}
	report, source := settlement.Report{Status: ledger.Status(c.As)}, sourceHand
	if c.As == "lookup" {
		answer := desk.Ask(s, e)
		switch {
		case !answer.Answered:
			return nil, fmt.Errorf("the operator did not answer: %w", answer.Cause)
		case answer.NotFound:
			return nil, errors.New("the operator knows no such order: by hand, --as failed")
		case !answer.Final:
			return nil, fmt.Errorf("the operator says %s: nothing to settle yet", answer.Report.Status)
		}
		report, source = answer.Report, settlement.SourceStatus
	}
	return func(e *ledger.Entry) error {
		switch e.Resolve(desk.Resolution(e, report, source), ledger.Moment(s.Now())) {
		case ledger.Same:
			return ledger.ErrUnchanged
		case ledger.Conflicting:
			fmt.Fprintln(s.Notes, "It contradicts what is known, and is kept as a conflict.")
		}
		return nil
	}, nil
}

// directory makes the driver that asks, and that says whether the purchaser is owed an SMS.
func (c *unknownResolve) directory(s *session) (*operator.Directory, error) {
	held, err := readSecret(s, s.OperatorSecret, "OPERATOR_SECRET")
	if err != nil {
		return nil, err
	}
	return operator.NewDirectory(map[string]operator.Driver{gateway.Name: gateway.New(fixed(held.Value), s.Now)}), nil
}

// refuse makes an unknown charge one that was certainly not applied, with the answer that says so to the merchant's
// repeats.
func (c *unknownResolve) refuse(s *session) func(*ledger.Entry) error {
	answer := oneapi.Render(&fault.Fault{Kind: fault.OperatorError, Operator: &fault.OperatorFault{MessageID: "SVC0270"}})
	return func(e *ledger.Entry) error {
		now := ledger.Moment(s.Now())
		if e.Live(now) {
			return errors.New("an attempt is under way: wait until its lease has ended")
		}
		e.Settle(e.Owner, ledger.Settlement{State: ledger.Refused, AnswerStatus: answer.Status, AnswerBody: answer.Body}, now)
		if e.State != ledger.Refused {
			return fmt.Errorf("it is %s by now", e.State)
		}
		return nil
	}
}
