// Package operation is the pipeline that charge, pay and sms share: authenticate, reserve, call the operator, record
// the outcome.
//
// Each operation shows its seven steps in one function of its own package; the steps that are the same in all three are
// here. Its invariant: no request is sent to an operator without a reservation, and no outcome of a call is reported
// before it is stored. If it cannot be stored, the merchant gets 504 and retries.
package operation

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/money"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/strictjson"
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

// Attempt is one request on its way through the steps of an operation. Each step fills in what the next ones need.
type Attempt struct {
	Request *apigw.Request
	Profile *merchant.Profile
	Body    *strictjson.Reader
	// Choice is the platform and the account of a new transaction.
	Choice Choice
	Key    IdempotencyKey
	// Location is the URL at which the merchant can look the transaction up; "" for a payment.
	Location string
	// Entry is the transaction that the request describes.
	Entry *ledger.Entry
	// Stored is the entry that the ledger has under the key: this attempt's reservation with its outcome, or the entry
	// of an earlier request; nil before Reserve.
	Stored *ledger.Entry
}

// Unknown is the fault of an unknown outcome. It has the transaction's URL, so that the merchant can look it up
// (decision "charge-unknown"). Use it only after the reservation.
func (a *Attempt) Unknown(cause error) *fault.Fault {
	return &fault.Fault{Kind: fault.OutcomeUnknown, Location: a.Location, Cause: cause}
}

// IdempotencyKey is the key under which a request has an effect at most once. Part is the message part that carries it;
// faults name it.
type IdempotencyKey struct{ Value, Part string }

// Choice is the platform and the account of a new transaction, or the refusal of a key without an entry.
type Choice struct {
	operator.Selection
	// Refusal is set if nothing serves the request now. A key that has an entry already gets its response.
	Refusal error
	// NotYet is set while nothing can be sent. It refuses a key that is new or released; nothing is written then.
	NotYet *fault.Fault
}

// partMCO names the country of a charge or an SMS.
const partMCO = "X-Operator-MCO"

// SelectOperator chooses the operator of a country for a charge or an SMS, which name none (decision "charge-country").
// It is the first in the profile's order that has a platform for it. The error is Forbidden if the merchant may not use
// the operation there.
func (p *Pipeline) SelectOperator(ctx context.Context, a *Attempt, operation string, country market.Country) error {
	if reason := a.Profile.ReasonNotAllowed(operation, country.Alpha2, ""); reason != "" {
		return fault.NotEntitled(reason)
	}
	if country.Alpha2 == "" {
		return fault.NotEntitled("the profile has no country")
	}
	routes, err := p.Operators.Routes(ctx)
	if err != nil {
		a.Choice.Refusal = err
		return nil
	}
	for _, name := range a.Profile.Operators {
		service := operator.Service{Operator: name, Country: country.Alpha2, Operation: operation}
		if selection, found := routes.Select(service); found {
			a.Choice.Selection = selection
			return nil
		}
	}
	var codes []string
	for _, c := range market.All() {
		if len(routes.Operators(a.Profile.Operators, c.Alpha2, operation)) > 0 {
			codes = append(codes, c.MCO)
		}
	}
	a.Choice.Refusal = fault.NotAllowed(partMCO, codes)
	if len(codes) == 0 {
		a.Choice.Refusal = fault.NotEntitled("no operator of the profile has a platform for " + operation)
	}
	return nil
}

// CheckFunc returns why the driver's platform does not take a request. common is filled in from the new entry.
type CheckFunc func(ctx context.Context, driver operator.Driver, common operator.Call) *fault.Fault

// Reserve fills in the entry's merchant, lease and account, and reserves it. It sets a.Stored, and returns whether that
// is our reservation: then call the operator, else repeat the stored response. RequestInProgress, OutcomeUnknown and
// DuplicateKey set a.Stored too. check, if any, refuses before anything is stored. That, a choice that refuses the
// request and an account that cannot be used refuse only a key without an entry (decision "routes").
func (p *Pipeline) Reserve(ctx context.Context, a *Attempt, check CheckFunc) (reserved bool, err error) {
	line, e := a.Request.LogLine, a.Entry
	line.SetTransactionKey(a.Key.Value)
	LogRouting(a.Request, e)
	e.Merchant.ID, e.Merchant.Name = a.Profile.ID, a.Profile.Name
	_, e.Amount.CountsDaily = a.Profile.DailyAmountLimit(e.Amount.Currency)
	e.LeaseUntil = a.Request.Deadline.Add(leaseMargin)
	refusal := a.Choice.Refusal
	if refusal == nil {
		refusal = p.pin(ctx, a, check)
	}
	reserve := p.Book.Reserve
	switch {
	case a.Choice.NotYet != nil:
		reserve, refusal = p.Book.FindExisting, a.Choice.NotYet
	case refusal != nil:
		reserve = p.Book.ReserveExisting
	}
	stored, verdict, err := reserve(ctx, e, resendWindow)
	if err != nil {
		return false, fault.NewInternal(err)
	}
	if stored == nil {
		refused := fault.FromError(refusal)
		countOwnFault(line, refused)
		return false, refused
	}
	a.Stored = stored
	if verdict == ledger.NewReservation || verdict == ledger.TakenOver {
		return true, nil
	}
	if stored.Request.Fingerprint != e.Request.Fingerprint {
		line.Increment(telemetry.MismatchedRepeats)
	}
	switch verdict {
	case ledger.StoredResponse:
		line.SetRepeated(true)
		return false, nil
	case ledger.InFlight:
		return false, &fault.Fault{Kind: fault.RequestInProgress, Part: a.Key.Part, Value: a.Key.Value}
	case ledger.StillUnknown:
		return false, a.Unknown(nil)
	default: // ledger.KeyTaken
		return false, &fault.Fault{Kind: fault.DuplicateKey, Part: a.Key.Part, Value: a.Key.Value}
	}
}

// pin sets what a new transaction is pinned to. An error means that the account or the platform cannot serve it.
func (p *Pipeline) pin(ctx context.Context, a *Attempt, check CheckFunc) error {
	driver, _, found := p.Operators.Driver(a.Choice.Platform)
	if !found {
		return errNoDriver
	}
	pin := operator.Pin{Platform: a.Choice.Platform}
	if a.Choice.Account != "" {
		pin = operator.ParsePin(a.Choice.Account, a.Choice.Operator)
	}
	account, err := driver.FindAccount(ctx, pin.Platform, pin.Account)
	a.Entry.Route.Account = cmp.Or(a.Choice.Account, account)
	if err != nil || check == nil {
		return err
	}
	if refused := check(ctx, driver, operator.NewCall(a.Entry)); refused != nil {
		return refused
	}
	return nil
}

var errNoDriver = errors.New("the operator has no driver")

// resendWindow is how long after its first send a transaction may be sent again to its platform.
func resendWindow(e *ledger.Entry) time.Duration {
	return operator.CapabilitiesOf(e).SafeResendWindow()
}

// ReserveDailyAmount counts a reservation in the merchant's day, before the operator is called. After a nil
// error the caller continues. After any other error this attempt sends nothing (decision "merchant-limits"):
//
//   - DailyLimitExceeded: the amount does not fit, and the reservation is released. A key under which nothing was ever
//     sent binds no body.
//   - OperatorUnavailable: the table of limits does not respond, and the reservation is released.
//   - OutcomeUnknown: an earlier attempt may have been applied (decision "unknown-sticks").
//   - Internal: the refusal could not be stored.
func (p *Pipeline) ReserveDailyAmount(ctx context.Context, a *Attempt) error {
	reserveErr := p.DailyAmounts.Reserve(ctx, a.Profile, a.Stored)
	if reserveErr == nil {
		return nil
	}
	line := a.Request.LogLine
	if overLimit, isOver := errors.AsType[*dailyamount.OverLimitError](reserveErr); isOver {
		refusal := &fault.Fault{
			Kind: fault.DailyLimitExceeded, Part: a.Stored.Amount.Currency,
			Value: money.Format(overLimit.Remaining, a.Stored.Amount.Exponent),
		}
		updated, err := p.Release(ctx, a.Stored, "daily-amount", refusal, true)
		switch {
		case err != nil:
			return fault.NewInternal(err)
		case updated.State != ledger.Released: // a success was claimed in the meantime, or a successor is at work
			return a.Unknown(nil)
		}
		line.Increment(telemetry.DailyLimitRefusals)
		return refusal
	}
	line.Increment(telemetry.LimitStoreFailures)
	refusal := &fault.Fault{Kind: fault.OperatorUnavailable, Cause: reserveErr}
	updated, err := p.Release(ctx, a.Stored, "limit-store", refusal, false)
	if err != nil || updated.State != ledger.Released {
		return a.Unknown(errors.Join(reserveErr, err))
	}
	p.refundDailyAmount(ctx, line, a.Stored, updated)
	return refusal
}

// Release releases a reservation before the operator was called, with the fault that the merchant gets, and returns the
// entry as stored. unbindBody is for a key under which nothing was ever sent (ledger.CallOutcome).
func (p *Pipeline) Release(
	ctx context.Context, reservation *ledger.Entry, reason string, refusal *fault.Fault, unbindBody bool,
) (*ledger.Entry, error) {
	return p.Book.StoreOutcome(ctx, reservation, ledger.ReleaseUncalled, ledger.CallOutcome{
		State: ledger.Released, UnbindBody: unbindBody, Call: ledger.CallResult{
			Outcome: ledger.CallNotSent, Reason: reason, Response: oneapi.Render(refusal).Status,
		},
	})
}

// refundDailyAmount refunds the amount of an entry that was certainly not applied. It also refunds a reservation whose
// entry has moved to a later day, because a retry may have come before this attempt's refund. If it fails, the amount
// stays counted until the day is over, and the response stays the same.
func (p *Pipeline) refundDailyAmount(
	ctx context.Context, line *telemetry.LogLine, reservation, updated *ledger.Entry,
) {
	err := errors.Join(p.DailyAmounts.Refund(ctx, updated), p.DailyAmounts.RefundMoved(ctx, reservation, updated))
	if err != nil {
		line.Increment(telemetry.LimitStoreFailures)
		line.SetCause(err)
	}
}

// SendFunc sends one operator call. common is filled in from the reservation. A charge and an SMS have only a Result.
type SendFunc func(ctx context.Context, driver operator.Driver, common operator.Call) operator.PayResponse

// CallOperator makes one operator call under a deadline that leaves time to store its outcome, and logs its duration.
func (p *Pipeline) CallOperator(ctx context.Context, a *Attempt, send SendFunc) operator.PayResponse {
	driver, found := p.Operators.DriverOf(a.Stored)
	if !found {
		noDriver := &fault.Fault{Kind: fault.IntegrationRejected, Cause: errNoDriver}
		return operator.PayResponse{Result: operator.Result{Outcome: operator.NotApplied, Fault: noDriver}}
	}
	start := p.Now()
	deadline := start.Add(p.OperatorTimeout)
	if latest := a.Request.Deadline.Add(-storeMargin); latest.Before(deadline) {
		deadline = latest
	}
	callCtx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	call := operator.NewCall(a.Stored)
	call.MayRepeat = a.Stored.EverUnknown
	response := send(callCtx, driver, call)
	a.Request.LogLine.AddOperatorTime(p.Now().Sub(start))
	return response
}

// CallOutcomes is what the ledger stores for each way in which a call can end. RecordOutcome fills in the state, and
// the response of Refused. If the response of Unknown is empty, an unknown outcome is a 504.
type CallOutcomes struct {
	Done    ledger.CallOutcome
	Refused ledger.CallOutcome
	Unknown ledger.CallOutcome
}

// RecordOutcome stores the outcome of the call. a.Stored is then the entry as the ledger has it, which is not always
// what this call saw, and has the response. Its faults are OutcomeUnknown, and the fault of the result if the call was
// not applied.
func (p *Pipeline) RecordOutcome(
	ctx context.Context, a *Attempt, result operator.Result, outcomes CallOutcomes,
) error {
	reservation, line := a.Stored, a.Request.LogLine
	outcome, made := outcomes.callOutcome(reservation, result)
	outcome.Call = callResult(result)
	updated, err := p.Book.StoreOutcome(ctx, reservation, made, outcome)
	if err != nil {
		// An outcome that is not stored is not reported. The lease lapses into unknown, and the merchant's retry
		// decides.
		line.Increment(telemetry.UnknownOutcomes)
		return a.Unknown(err)
	}
	a.Stored = updated
	logOutcome(line, updated, result)
	line.Add(telemetry.StatusConflicts, max(0, len(updated.Conflicts)-len(reservation.Conflicts)))
	p.refundDailyAmount(ctx, line, reservation, updated)
	switch {
	case updated.Response.Status != 0:
		return nil
	case result.Fault == nil:
		return a.Unknown(nil)
	case updated.State == ledger.Released:
		return result.Fault
	default:
		return a.Unknown(result.Fault)
	}
}

// StoreMissingResponse stores the response 201 of an entry whose success became known without one, by the transition
// that has its reason. A response that another attempt has stored first stays: a.Stored has the one that every repeat
// gets.
func (p *Pipeline) StoreMissingResponse(ctx context.Context, a *Attempt, t ledger.Transition, body []byte) error {
	missing := ledger.CallOutcome{State: ledger.Done, ResponseStatus: http.StatusCreated, ResponseBody: body}
	updated, err := p.Book.StoreOutcome(ctx, a.Stored, t, missing)
	if err != nil {
		return a.Unknown(err)
	}
	a.Stored = updated
	return nil
}

// countOwnFault counts credentials that are missing, incomplete or refused, which have an alarm of their own, codes
// that a driver does not know, and accounts without units.
func countOwnFault(line *telemetry.LogLine, f *fault.Fault) {
	switch callReason(operator.Result{Fault: f}) {
	case ledger.ReasonRejected:
		line.Increment(telemetry.OperatorAuthFailures)
	case reasonUnmapped:
		line.Increment(telemetry.UnmappedCodes)
	case reasonNoUnits:
		line.Increment(telemetry.ExhaustedAccounts)
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
