package operation

import (
	"context"
	"errors"
	"net/http"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/telemetry"
)

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

// callOutcome maps an operator's result to what the ledger stores, and to the transition. A final refusal is stored
// byte for byte as its response (decision "charge-refusal"). After an unknown attempt a later "not applied" proves
// nothing about that attempt (decision "unknown-sticks").
func (o CallOutcomes) callOutcome(
	reservation *ledger.Entry, result operator.Result,
) (ledger.CallOutcome, ledger.Transition) {
	switch {
	case result.Outcome == operator.Succeeded:
		outcome := o.Done
		outcome.State, outcome.OperatorReference = ledger.Done, result.OperatorReference
		return outcome, ledger.RecordSuccess
	case result.Outcome == operator.Refused:
		response := oneapi.Render(result.Fault)
		outcome := o.Refused
		outcome.State, outcome.ResponseStatus, outcome.ResponseBody = ledger.Refused, response.Status, response.Body
		return outcome, ledger.RecordRefusal
	case result.Outcome == operator.NotApplied && !reservation.EverUnknown:
		return ledger.CallOutcome{State: ledger.Released}, ledger.RecordNotApplied
	default:
		outcome := o.Unknown
		outcome.State = ledger.Unknown
		outcome.DuplicateKey = result.DuplicateKey
		outcome.NothingSent = result.DuplicateKey || result.Outcome == operator.NotApplied
		return outcome, ledger.RecordUnknown
	}
}

// callResult describes an operator call for people. Its reason is the operator's message id, or one of our words.
func callResult(result operator.Result) ledger.CallResult {
	outcomes := map[operator.Outcome]string{
		operator.Succeeded: ledger.CallSucceeded, operator.Refused: ledger.CallRefused,
		operator.NotApplied: ledger.CallNotApplied, operator.Unknown: ledger.CallUnknown,
	}
	described := ledger.CallResult{
		Outcome: outcomes[result.Outcome], Reason: callReason(result), HTTPStatus: result.HTTPStatus,
		Code: result.Code,
	}
	if result.Outcome == operator.NotApplied {
		described.Response = oneapi.Render(result.Fault).Status
	}
	return described
}

// The reasons of a refused call that are counted: a code that the driver does not know, an account without units.
const (
	reasonUnmapped = "unmapped-code"
	reasonNoUnits  = "no-units"
)

// callReason is why a call did not succeed.
func callReason(result operator.Result) string {
	f := result.Fault
	switch {
	case f == nil:
		return ""
	case f.OperatorException != nil:
		return f.OperatorException.MessageID
	case errors.Is(f, operator.ErrUnmappedCode):
		return reasonUnmapped
	case errors.Is(f, operator.ErrNoUnits):
		return reasonNoUnits
	case f.Kind == fault.IntegrationRejected, errors.Is(f, operator.ErrCredentialsRefused):
		return ledger.ReasonRejected
	case f.Kind == fault.OperatorUnavailable:
		return "unavailable"
	case result.DuplicateKey:
		return "duplicate-key"
	case errors.Is(f, context.DeadlineExceeded):
		return "timeout"
	case result.HTTPStatus == 0:
		return "connection"
	}
	return "response" // it proves nothing
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

// StoredResponse builds the response that the entry has stored. replayed marks it as the replay of an earlier response.
func (a *Attempt) StoredResponse(replayed bool) apigw.Response {
	header := map[string]string{"Content-Type": "application/json"}
	if replayed {
		header["Idempotent-Replayed"] = "true"
	}
	if a.Location != "" && a.Stored.State == ledger.Done {
		header["Location"] = a.Location
	}
	return apigw.Response{Status: a.Stored.Response.Status, Header: header, Body: a.Stored.Response.Body}
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
	if observed := p.Circuits.Begin(a.circuit, a.probe); observed != nil {
		defer observed.End()
		callCtx = upstream.WithObserver(callCtx, observed)
	}
	call := operator.NewCall(a.Stored)
	call.MayRepeat = a.Stored.EverUnknown
	response := send(callCtx, driver, call)
	a.Request.LogLine.AddOperatorTime(p.Now().Sub(start))
	return response
}
