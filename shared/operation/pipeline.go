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

// Choice is the platform and the account of a new transaction, or the refusal of a key without an entry.
type Choice struct {
	operator.Selection
	// Refusal is set if nothing serves the request now. A key that has an entry already gets its response.
	Refusal error
	// NotYet is set while nothing can be sent. It refuses a key that is new or released; nothing is written then.
	NotYet *fault.Fault
	// Check returns why the driver's platform does not take the request; nil checks nothing.
	Check CheckFunc
}

// CheckFunc checks a request before anything is stored. common is filled in from the new entry.
type CheckFunc func(ctx context.Context, driver operator.Driver, common operator.Call) *fault.Fault

// partMCO names the country of a charge or an SMS.
const partMCO = "X-Operator-MCO"

// SelectOperator selects the operator of a country for a merchant, for a charge or an SMS, which name none (decision
// "charge-country"). It is the first in the profile's order that has a platform for it. The error is Forbidden if the
// merchant may not use the operation there.
func (p *Pipeline) SelectOperator(
	ctx context.Context, profile *merchant.Profile, operation string, country market.Country,
) (Choice, error) {
	if reason := profile.ReasonNotAllowed(operation, country.Alpha2, ""); reason != "" {
		return Choice{}, fault.NotEntitled(reason)
	}
	if country.Alpha2 == "" {
		return Choice{}, fault.NotEntitled("the profile has no country")
	}
	routes, err := p.Operators.Routes(ctx)
	if err != nil {
		return Choice{Refusal: err}, nil
	}
	for _, name := range profile.Operators {
		service := operator.Service{Operator: name, Country: country.Alpha2, Operation: operation}
		if selection, found := routes.Select(service); found {
			return Choice{Selection: selection}, nil
		}
	}
	var codes []string
	for _, c := range market.All() {
		if len(routes.Operators(profile.Operators, c.Alpha2, operation)) > 0 {
			codes = append(codes, c.MCO)
		}
	}
	if len(codes) == 0 {
		return Choice{Refusal: fault.NotEntitled("no operator of the profile has a platform for " + operation)}, nil
	}
	return Choice{Refusal: fault.NotAllowed(partMCO, codes)}, nil
}

// IdempotencyKey is the key under which a request has an effect at most once. Part is the message part that carries it;
// faults name it.
type IdempotencyKey struct{ Value, Part string }

// Reserve fills in the entry's merchant, lease and account, and reserves it. It sets exactly one of its results, with
// one exception: reservation, so that the operator is called; or existing, whose response is repeated; or an error. A
// DuplicateKey or OutcomeUnknown fault also returns the existing entry. A choice that refuses the request, and an
// account that cannot be used, refuse only a key without an entry (decision "routes").
func (p *Pipeline) Reserve(
	ctx context.Context, req *apigw.Request, profile *merchant.Profile, e *ledger.Entry, choice Choice,
	key IdempotencyKey,
) (reservation, existing *ledger.Entry, err error) {
	e.MerchantID, e.Merchant = profile.ID, profile.Name
	_, e.CountsDailyAmount = profile.DailyAmountLimit(e.Currency)
	e.LeaseUntil = req.Deadline.Add(leaseMargin)
	refusal := choice.Refusal
	if refusal == nil {
		refusal = p.pin(ctx, choice, e)
	}
	reserve := p.Book.Reserve
	switch {
	case choice.NotYet != nil:
		reserve, refusal = p.Book.FindExisting, choice.NotYet
	case refusal != nil:
		reserve = p.Book.ReserveExisting
	}
	entry, verdict, err := reserve(ctx, e, resendWindow)
	if err != nil {
		return nil, nil, fault.NewInternal(err)
	}
	if entry == nil {
		refused := fault.FromError(refusal)
		countOwnFault(req.LogLine, refused)
		return nil, nil, refused
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
		return nil, entry, fault.New(fault.OutcomeUnknown)
	default: // ledger.KeyTaken
		return nil, entry, &fault.Fault{Kind: fault.DuplicateKey, Part: key.Part, Value: key.Value}
	}
}

// pin sets what a new transaction is pinned to. An error means that the account or the platform cannot serve it.
func (p *Pipeline) pin(ctx context.Context, choice Choice, e *ledger.Entry) error {
	driver, _, found := p.Operators.Driver(choice.Platform)
	if !found {
		return errNoDriver
	}
	pin := operator.Pin{Platform: choice.Platform}
	if choice.Account != "" {
		pin = operator.ParsePin(choice.Account, choice.Operator)
	}
	account, err := driver.FindAccount(ctx, pin.Platform, pin.Account)
	if e.Account = cmp.Or(choice.Account, account); err != nil || choice.Check == nil {
		return err
	}
	if refused := choice.Check(ctx, driver, operator.NewCall(e)); refused != nil {
		return refused
	}
	return nil
}

var errNoDriver = errors.New("the operator has no driver")

// resendWindow is how long after its first send a transaction may be sent again to its platform.
func resendWindow(e *ledger.Entry) time.Duration {
	return operator.CapabilitiesOf(e).SafeResendWindow()
}

// SendFunc sends one operator call. common is filled in from the reservation.
type SendFunc func(ctx context.Context, driver operator.Driver, common operator.Call) operator.Result

// CallOperator makes one operator call under a deadline that leaves time to store its outcome, and logs its duration.
func (p *Pipeline) CallOperator(
	ctx context.Context, req *apigw.Request, reservation *ledger.Entry, send SendFunc,
) operator.Result {
	driver, found := p.Operators.DriverOf(reservation)
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
	call := operator.NewCall(reservation)
	call.MayRepeat = reservation.EverUnknown
	result := send(callCtx, driver, call)
	req.LogLine.AddOperatorTime(p.Now().Sub(start))
	return result
}

// Prepare gets the platform's own key of a payment, if the driver needs one, and stores it before the payment is sent
// (decision "prepare"). It returns the reservation as stored, and sets call.DriverData. A result with a fault means
// that the payment must not be sent: it is certainly not applied.
func (p *Pipeline) Prepare(
	ctx context.Context, driver operator.Driver, reservation *ledger.Entry, call *operator.PayCall,
) (*ledger.Entry, operator.Result) {
	preparer, needed := driver.(operator.Preparer)
	if !needed || reservation.Material != "" {
		return reservation, operator.Result{}
	}
	material, result := preparer.Prepare(ctx, *call)
	if result.Outcome != operator.Succeeded {
		return reservation, result
	}
	isStored := false
	stored, err := p.Book.ApplyChange(ctx, reservation, func(e *ledger.Entry) bool {
		isStored = e.StoreMaterial(reservation.Owner, material, ledger.Timestamp(p.Now()))
		return isStored
	})
	if err != nil || !isStored {
		cause := errors.Join(errors.New("the operator's key of the payment could not be stored"), err)
		notSent := &fault.Fault{Kind: fault.OperatorUnavailable, Cause: cause}
		return reservation, operator.Result{Outcome: operator.NotApplied, Fault: notSent}
	}
	call.DriverData = material
	return stored, operator.Result{}
}

// TakeAccountRate keeps the messages of an account within the rate of its platform, for all functions together. It
// returns nil if the message may be sent. Else nothing is sent, and the merchant gets 503. A table
// that does not respond limits nothing, because the platform has a limit of its own.
func (p *Pipeline) TakeAccountRate(
	ctx context.Context, req *apigw.Request, reservation *ledger.Entry,
) *operator.Result {
	perSecond := operator.CapabilitiesOf(reservation).SMSPerSecond
	if perSecond == 0 {
		return nil
	}
	wait, err := p.RateLimiter.Take(ctx, "account/"+reservation.Account, perSecond, perSecond)
	if err != nil {
		req.LogLine.Increment(telemetry.LimitStoreFailures)
		req.LogLine.SetCause(err)
	}
	if wait <= 0 {
		return nil
	}
	limited := &fault.Fault{Kind: fault.OperatorUnavailable, Cause: errAccountRate}
	return &operator.Result{Outcome: operator.NotApplied, Fault: limited}
}

var errAccountRate = errors.New("the account sends as many messages in a second as its platform takes")

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
