package operation

import (
	"context"
	"errors"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/operator"
)

// callResult describes an operator call for people. Its reason is the operator's message id, or one of our words.
func callResult(result operator.Result) ledger.CallResult {
	outcomes := map[operator.Outcome]string{
		operator.Succeeded: ledger.CallSucceeded, operator.Refused: ledger.CallRefused,
		operator.NotApplied: ledger.CallNotApplied, operator.Unknown: ledger.CallUnknown,
	}
	described := ledger.CallResult{
		Outcome: outcomes[result.Outcome], Reason: callReason(result), HTTPStatus: result.HTTPStatus,
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
