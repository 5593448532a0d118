// Package operation is the pipeline that charge, pay and sms share: authenticate, reserve, call the operator, record
// the outcome.
//
// Each operation shows its seven steps in one function of its own package; the steps that are the same in all three are
// here. Its invariant: no request is sent to an operator without a reservation, and no outcome of a call is reported
// before it is stored. If it cannot be stored, the merchant gets 504 and retries.
package operation

import (
	"context"
	"errors"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/telemetry"
)

const (
	// leaseMargin is how long a lease outlasts its invocation, because clocks differ (decision "leases").
	leaseMargin = 5 * time.Second
	// storeMargin is the rest of the invocation after an operator call, to store its outcome and to respond.
	storeMargin = 5 * time.Second
)

// Pipeline has the dependencies of the steps. It has no state of its own and is safe for concurrent use.
type Pipeline struct {
	Merchants Authenticator
	Book      *ledger.Book
	Operators *operator.DriverDirectory
	// RateLimiter and DailyAmounts are used only for merchants that have a limit.
	RateLimiter  *limit.RateLimiter
	DailyAmounts *dailyamount.Counter
	// OperatorTimeout bounds one operator call. The invocation's deadline bounds it further.
	OperatorTimeout time.Duration
	Now             func() time.Time
}

// ExpireAt returns when an entry that is reserved now expires; a retention of 0 keeps it without limit.
func (p *Pipeline) ExpireAt(retention time.Duration) time.Time {
	if retention <= 0 {
		return time.Time{}
	}
	return p.Now().Add(retention)
}

// SelectOperator selects the operator of a country for a merchant, for requests that name none (charge and SMS,
// decision "charge-country"). It returns Forbidden if the merchant may not use the operation there.
func (p *Pipeline) SelectOperator(
	profile *merchant.Profile, operation string, country market.Country,
) (operator.Capabilities, error) {
	if reason := profile.ReasonNotAllowed(operation, country.Alpha2, ""); reason != "" {
		return operator.Capabilities{}, fault.NotEntitled(reason)
	}
	capabilities, found := operator.FirstServing(profile.Operators, country.Alpha2)
	if !found {
		return operator.Capabilities{}, fault.NotEntitled("no operator of the profile serves " + country.Name)
	}
	return capabilities, nil
}

// IdempotencyKey is the key under which a request has an effect at most once. Part is the message part that carries it;
// faults name it.
type IdempotencyKey struct{ Value, Part string }

// Reserve fills in the entry's merchant, lease and operator account, and reserves it. It sets exactly one of its
// results, with one exception: reservation, so that the operator is called; or existing, whose response is repeated;
// or an error. A DuplicateKey fault also returns the existing entry.
func (p *Pipeline) Reserve(
	ctx context.Context, req *apigw.Request, profile *merchant.Profile, e *ledger.Entry, key IdempotencyKey,
) (reservation, existing *ledger.Entry, err error) {
	e.MerchantID, e.Merchant = profile.ID, profile.Name
	_, e.CountsDailyAmount = profile.DailyAmountLimit(e.Currency)
	e.LeaseUntil = req.Deadline.Add(leaseMargin)
	e.Account, err = p.operatorAccount(ctx, e.Operator)
	if err != nil {
		refusal := fault.FromError(err)
		countOwnFault(req.LogLine, refusal)
		return nil, nil, refusal
	}
	entry, verdict, err := p.Book.Reserve(ctx, e, resendWindow)
	if err != nil {
		return nil, nil, fault.NewInternal(err)
	}
	if verdict == ledger.NewReservation || verdict == ledger.TakenOver {
		return entry, nil, nil
	}
	if entry.Fingerprint != e.Fingerprint {
		req.LogLine.Increment(telemetry.MismatchedRepeats)
	}
	switch verdict {
	case ledger.StoredResponse:
		req.LogLine.SetRepeated(true)
		return nil, entry, nil
	case ledger.InFlight:
		return nil, nil, &fault.Fault{Kind: fault.RequestInProgress, Part: key.Part, Value: key.Value}
	case ledger.StillUnknown:
		return nil, nil, fault.New(fault.OutcomeUnknown)
	default: // ledger.KeyTaken
		return nil, entry, &fault.Fault{Kind: fault.DuplicateKey, Part: key.Part, Value: key.Value}
	}
}

// operatorAccount returns the operator's account that a new transaction is pinned to.
func (p *Pipeline) operatorAccount(ctx context.Context, name string) (string, error) {
	driver, _, found := p.Operators.Driver(name)
	if !found {
		return "", errNoDriver
	}
	return driver.CurrentAccountID(ctx, name)
}

var errNoDriver = errors.New("the operator has no driver")

// resendWindow is how long after its first send a transaction may be sent again to its operator.
func resendWindow(name string) time.Duration {
	capabilities, _ := operator.FindCapabilities(name)
	return capabilities.SafeResendWindow()
}

// SendFunc sends one operator call. common is filled in from the reservation.
type SendFunc func(ctx context.Context, driver operator.Driver, common operator.Call) operator.Result

// CallOperator makes one operator call under a deadline that leaves time to store its outcome, and logs its duration.
func (p *Pipeline) CallOperator(
	ctx context.Context, req *apigw.Request, reservation *ledger.Entry, send SendFunc,
) operator.Result {
	driver, _, found := p.Operators.Driver(reservation.Operator)
	if !found {
		noDriver := &fault.Fault{Kind: fault.IntegrationRejected, Cause: errNoDriver}
		return operator.Result{Outcome: operator.NotApplied, Fault: noDriver}
	}
	start := p.Now()
	deadline := start.Add(p.OperatorTimeout)
	if latest := req.Deadline.Add(-storeMargin); latest.Before(deadline) {
		deadline = latest
	}
	callCtx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	country, _ := market.ByAlpha2(reservation.Country)
	result := send(callCtx, driver, operator.Call{
		Operator: reservation.Operator, AccountID: reservation.Account, UpstreamKey: reservation.UpstreamKey,
		MCO: country.MCO, Country: reservation.Country, MayRepeat: reservation.EverUnknown,
	})
	req.LogLine.AddOperatorTime(p.Now().Sub(start))
	return result
}

// CallOutcomes is what the ledger stores for each way in which a call can end. RecordOutcome fills in the state, and
// the response of Refused. If the response of Unknown is empty, an unknown outcome is a 504.
type CallOutcomes struct {
	Done    ledger.CallOutcome
	Refused ledger.CallOutcome
	Unknown ledger.CallOutcome
}

// RecordOutcome stores the outcome of the call and returns the entry with the response. That is the entry as
// the ledger has it afterwards, which is not always what this call saw. Its faults are OutcomeUnknown, and the fault of
// the result if the call was not applied.
func (p *Pipeline) RecordOutcome(
	ctx context.Context, req *apigw.Request, reservation *ledger.Entry, result operator.Result, outcomes CallOutcomes,
) (*ledger.Entry, error) {
	outcome := outcomes.callOutcome(reservation, result)
	outcome.Call = callResult(result)
	updated, err := p.Book.StoreOutcome(ctx, reservation, outcome)
	if err != nil {
		// An outcome that is not stored is not reported. The lease lapses into unknown, and the merchant's retry
		// decides.
		req.LogLine.Increment(telemetry.UnknownOutcomes)
		return nil, &fault.Fault{Kind: fault.OutcomeUnknown, Cause: err}
	}
	logOutcome(req.LogLine, updated, result)
	req.LogLine.Add(telemetry.StatusConflicts, max(0, len(updated.Conflicts)-len(reservation.Conflicts)))
	p.refundDailyAmount(ctx, req, reservation, updated)
	if updated.ResponseStatus != 0 {
		return updated, nil
	}
	if result.Fault == nil {
		return nil, fault.New(fault.OutcomeUnknown)
	}
	if updated.State == ledger.Released {
		return nil, result.Fault
	}
	return nil, &fault.Fault{Kind: fault.OutcomeUnknown, Cause: result.Fault}
}

// countOwnFault counts credentials that are missing, incomplete or refused; they have an alarm of their own.
func countOwnFault(line *telemetry.LogLine, f *fault.Fault) {
	if f.Kind == fault.IntegrationRejected {
		line.Increment(telemetry.OperatorAuthFailures)
	}
}

// logOutcome logs and counts the outcome.
func logOutcome(line *telemetry.LogLine, updated *ledger.Entry, result operator.Result) {
	line.SetOutcome(string(updated.State))
	switch updated.State {
	case ledger.Unknown:
		line.Increment(telemetry.UnknownOutcomes)
	case ledger.Released:
		line.Increment(telemetry.NotAppliedCalls)
	case ledger.Refused:
		line.Increment(telemetry.OperatorRefusals)
	}
	if result.Fault == nil {
		return
	}
	countOwnFault(line, result.Fault)
	line.SetCause(result.Fault)
}

// callOutcome maps an operator's result to what the ledger stores. A final refusal is stored byte for byte as its
// response (decision "charge-refusal"). After an unknown attempt a later "not applied" proves nothing about that
// attempt (decision "unknown-sticks").
func (o CallOutcomes) callOutcome(reservation *ledger.Entry, result operator.Result) ledger.CallOutcome {
	switch {
	case result.Outcome == operator.Succeeded:
		outcome := o.Done
		outcome.State, outcome.OperatorReference = ledger.Done, result.OperatorReference
		return outcome
	case result.Outcome == operator.Refused:
		response := oneapi.Render(result.Fault)
		outcome := o.Refused
		outcome.State, outcome.ResponseStatus, outcome.ResponseBody = ledger.Refused, response.Status, response.Body
		return outcome
	case result.Outcome == operator.NotApplied && !reservation.EverUnknown:
		return ledger.CallOutcome{State: ledger.Released}
	default:
		outcome := o.Unknown
		outcome.State = ledger.Unknown
		outcome.DuplicateKey = result.DuplicateKey
		outcome.NothingSent = result.DuplicateKey || result.Outcome == operator.NotApplied
		return outcome
	}
}
