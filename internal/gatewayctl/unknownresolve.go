package gatewayctl

import (
	"errors"
	"fmt"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/reconcile"
)

type unknownResolve struct {
	Kind    string        `arg:"" enum:"pay,charge,sms" help:"pay, charge or sms."`
	ID      string        `arg:"" help:"The order_id, or the id of the charge or SMS."`
	As      string        `enum:"lookup,successful,failed,cancelled,applied,not-applied" default:"lookup" help:"lookup asks the operator about a payment. By hand, a payment: successful, failed, cancelled; a charge or an SMS: applied, not-applied."`
	Timeout time.Duration `default:"10s" help:"The longest wait for the operator's answer."`
}

// resolveByLookup is the word that is not a person's.
const resolveByLookup = "lookup"

// Run settles the entry by the operator's word or by a person's (decision "unknown-by-hand").
func (c *unknownResolve) Run(s *session) error {
	stores, err := s.openStores()
	if err != nil {
		return err
	}
	key := ledger.Key{Kind: ledger.Kind(c.Kind), ID: c.ID}
	e, err := stores.Ledger.Get(s, key)
	if err != nil {
		return err
	}
	if e == nil {
		return fmt.Errorf("there is no %s %s", kindLabel(key.Kind), c.ID)
	}
	if e.CountsDailyAmount && stores.LimitCounter == nil {
		return usageError("its amount counts against a limit of the merchant and might have to be given back: name the table of limits, by LIMIT_TABLE or --limit-table")
	}
	reconciler := &reconcile.Reconciler{LookupTimeout: c.Timeout}
	change, err := c.resolution(s, e, reconciler)
	if err != nil {
		return err
	}
	var resolved *ledger.Entry
	err = s.changes.execute(Action{"resolve as " + c.As, key.String() + " of " + e.Merchant}, func() (string, error) {
		var limitRefundErr, failed error
		resolved, limitRefundErr, failed = s.changes.resolveEntry(key, change)
		switch {
		case failed != nil:
			return "nothing", failed
		case limitRefundErr != nil:
			fmt.Fprintln(s.Stderr, "Its amount still counts against the merchant's day:", limitRefundErr)
		}
		return string(resolved.State) + " " + string(resolved.Status), nil
	})
	if err != nil {
		return err
	}
	return showHistory(s, resolved)
}

// resolution is what settles the entry; it is applied to the entry as it stands then, which another hand may have changed. It
// gives the desk the operators of a payment.
func (c *unknownResolve) resolution(s *session, e *ledger.Entry, reconciler *reconcile.Reconciler) (func(*ledger.Entry) error, error) {
	if c.As != resolveByLookup && e.Kind != ledger.Payment {
		return c.manualResolution(s, false), nil // nothing is to be asked, and no purchaser is owed an SMS
	}
	if e.Kind != ledger.Payment {
		return nil, usageError("no operator can be asked about a %s: --as applied or not-applied", kindLabel(e.Kind))
	}
	current, err := readSecret(s, s.OperatorSecret, "OPERATOR_CREDENTIALS_SECRET")
	if err != nil {
		return nil, err
	}
	reconciler.Operators = drivers.NewDirectory(staticSecret(current.Value), s.Now)
	if c.As != resolveByLookup {
		_, _, userSMS := reconciler.Operators.UserSMSSender(e.Operator)
		return c.manualResolution(s, userSMS), nil
	}
	return c.lookUpResolution(s, e, reconciler)
}

// manualResolution is a person's word.
func (c *unknownResolve) manualResolution(s *session, userSMS bool) func(*ledger.Entry) error {
	refusal := oneapi.Render(&fault.Fault{Kind: fault.OperatorError, OperatorException: &fault.OperatorException{MessageID: "SVC0270"}})
	resolution := ledger.ManualOutcome{
		ManualResolution: ledger.ManualResolution{Outcome: c.As, Who: s.auditUser(), Reason: s.Reason},
		ResponseStatus:   refusal.Status, ResponseBody: refusal.Body, UserSMS: userSMS, Lifetime: s.PaymentLifetime,
	}
	return func(e *ledger.Entry) error {
		err := e.ResolveManually(resolution, ledger.Timestamp(s.Now()))
		switch {
		case errors.Is(err, ledger.ErrInvalidResolution):
			return usageError("a %s cannot be resolved as %s", kindLabel(e.Kind), c.As)
		case errors.Is(err, ledger.ErrOutcomeKnown):
			return fmt.Errorf("%w: %s", err, firstNonEmpty(string(e.Status), string(e.State)))
		}
		return err
	}
}

// lookUpResolution is the operator's word.
func (c *unknownResolve) lookUpResolution(s *session, e *ledger.Entry, reconciler *reconcile.Reconciler) (func(*ledger.Entry) error, error) {
	if e.StatusFinal() {
		return nil, fmt.Errorf("%w: %s", ledger.ErrOutcomeKnown, e.Status)
	}
	response := reconciler.LookUp(s, e)
	switch {
	case !response.Supported:
		return nil, errors.New("the operator cannot be asked: resolve it by hand, with --as")
	case !response.Responded:
		return nil, fmt.Errorf("the operator did not answer: %w", response.Cause)
	case response.NotFound:
		return nil, errors.New("the operator knows no such order: by hand, --as failed")
	case !response.StatusFinal:
		return nil, fmt.Errorf("the operator says %s: nothing to settle yet", response.Report.Status)
	}
	return func(e *ledger.Entry) error {
		switch e.ApplyFinalStatus(reconciler.NewStatusReport(e, response.Report, reconcile.SourceStatus), ledger.Timestamp(s.Now())) {
		case ledger.Unchanged:
			return ledger.ErrUnchanged
		case ledger.Conflicting:
			fmt.Fprintln(s.Stderr, "It contradicts what is known, and is kept as a conflict.")
		}
		return nil
	}, nil
}
