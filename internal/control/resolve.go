package control

import (
	"errors"
	"fmt"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/settlement"
)

type unknownResolve struct {
	Kind    string        `arg:"" enum:"pay,charge,sms" help:"pay, charge or sms."`
	ID      string        `arg:"" help:"The order_id, or the id of the charge or SMS."`
	As      string        `enum:"lookup,successful,failed,cancelled,applied,not-applied" default:"lookup" help:"lookup asks the operator about a payment. By hand, a payment: successful, failed, cancelled; a charge or an SMS: applied, not-applied."`
	Timeout time.Duration `default:"10s" help:"The longest wait for the operator's answer."`
}

// lookup is the word that is not a person's.
const lookup = "lookup"

// Run settles the entry by the operator's word or by a person's (decision "unknown-by-hand").
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
		return fmt.Errorf("there is no %s %s", thing(key.Kind), c.ID)
	}
	if e.Limited && stores.Amounts == nil {
		return usage("its amount counts against a limit of the merchant and might have to be given back: name the table of limits, by LIMIT_TABLE or --limit-table")
	}
	desk := &settlement.Desk{Amounts: stores.Amounts, Timeout: c.Timeout}
	change, err := c.change(s, e, desk)
	if err != nil {
		return err
	}
	var settled *ledger.Entry
	err = s.hand.act(Act{"resolve as " + c.As, key.String() + " of " + e.Merchant}, func() (string, error) {
		var uncounted, failed error
		settled, uncounted, failed = s.hand.settle(desk, key, change)
		switch {
		case failed != nil:
			return "nothing", failed
		case uncounted != nil:
			fmt.Fprintln(s.Notes, "Its amount still counts against the merchant's day:", uncounted)
		}
		return string(settled.State) + " " + string(settled.Status), nil
	})
	if err != nil {
		return err
	}
	return showHistory(s, settled)
}

// change is what settles the entry; it is applied to the entry as it stands then, which another hand may have changed. It
// gives the desk the operators of a payment.
func (c *unknownResolve) change(s *session, e *ledger.Entry, desk *settlement.Desk) (func(*ledger.Entry) error, error) {
	if c.As != lookup && e.Kind != ledger.Payment {
		return c.judge(s, false), nil // nothing is to be asked, and no purchaser is owed an SMS
	}
	if e.Kind != ledger.Payment {
		return nil, usage("no operator can be asked about a %s: --as applied or not-applied", thing(e.Kind))
	}
	held, err := readSecret(s, s.OperatorSecret, "OPERATOR_SECRET")
	if err != nil {
		return nil, err
	}
	desk.Operators = drivers.Directory(fixed(held.Value), s.Now)
	if c.As != lookup {
		_, _, owed := desk.Operators.UserNotifier(e.Operator)
		return c.judge(s, owed), nil
	}
	return c.ask(s, e, desk)
}

// judge is a person's word.
func (c *unknownResolve) judge(s *session, userSMS bool) func(*ledger.Entry) error {
	refusal := oneapi.Render(&fault.Fault{Kind: fault.OperatorError, Operator: &fault.OperatorFault{MessageID: "SVC0270"}})
	judgement := ledger.Judgement{
		Word:         ledger.Word{Said: c.As, Who: s.who(), Why: s.Why},
		AnswerStatus: refusal.Status, AnswerBody: refusal.Body, UserSMS: userSMS, Lifetime: s.PaymentLifetime,
	}
	return func(e *ledger.Entry) error {
		err := e.Judge(judgement, ledger.Moment(s.Now()))
		switch {
		case errors.Is(err, ledger.ErrWord):
			return usage("a %s cannot be resolved as %s", thing(e.Kind), c.As)
		case errors.Is(err, ledger.ErrKnown):
			return fmt.Errorf("%w: %s", err, or(string(e.Status), string(e.State)))
		}
		return err
	}
}

// ask is the operator's word.
func (c *unknownResolve) ask(s *session, e *ledger.Entry, desk *settlement.Desk) (func(*ledger.Entry) error, error) {
	if e.Settled() {
		return nil, fmt.Errorf("%w: %s", ledger.ErrKnown, e.Status)
	}
	answer := desk.Ask(s, e)
	switch {
	case !answer.Offered:
		return nil, errors.New("the operator cannot be asked: resolve it by hand, with --as")
	case !answer.Answered:
		return nil, fmt.Errorf("the operator did not answer: %w", answer.Cause)
	case answer.NotFound:
		return nil, errors.New("the operator knows no such order: by hand, --as failed")
	case !answer.Final:
		return nil, fmt.Errorf("the operator says %s: nothing to settle yet", answer.Report.Status)
	}
	return func(e *ledger.Entry) error {
		switch e.Resolve(desk.Resolution(e, answer.Report, settlement.SourceStatus), ledger.Moment(s.Now())) {
		case ledger.Same:
			return ledger.ErrUnchanged
		case ledger.Conflicting:
			fmt.Fprintln(s.Notes, "It contradicts what is known, and is kept as a conflict.")
		}
		return nil
	}, nil
}
