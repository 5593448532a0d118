package upstream

import (
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
)

// NotApplied returns an outcome that is certainly not applied.
func NotApplied(kind fault.Kind, cause error) operator.Result {
	return operator.Result{Outcome: operator.NotApplied, Fault: &fault.Fault{Kind: kind, Cause: cause}}
}

// UnmappedCode returns the outcome of a refusal that is certainly not applied, by a code that the driver does not know.
// It is not a sign of refused credentials, so it is counted apart.
func UnmappedCode(cause error) operator.Result {
	return NotApplied(fault.IntegrationRejected, logsafe.Errorf("%w: %w", operator.ErrUnmappedCode, cause))
}

// NotSent returns the outcome of a call that was not sent for a fault.
func NotSent(f *fault.Fault) operator.Result {
	return operator.Result{Outcome: operator.NotApplied, Fault: f}
}

// Unknown returns an outcome that may have been applied.
func Unknown(cause error) operator.Result {
	return operator.Result{Outcome: operator.Unknown, Fault: &fault.Fault{Kind: fault.OutcomeUnknown, Cause: cause}}
}

// Duplicate returns the outcome of a key that the platform knows already.
func Duplicate(cause error) operator.Result {
	result := Unknown(cause)
	result.DuplicateKey = true
	return result
}

// refusals are the exceptions that the merchant gets for a reason. RefusedByPayer and NotEnoughFunds have messages of
// their own; the others differ by the variable.
var refusals = map[ledger.FailureReason]fault.OperatorException{
	ledger.RefusedByPayer: {MessageID: "POL0253"},
	ledger.NotEnoughFunds: {MessageID: "POL1000"},
	ledger.LimitReached:   {MessageID: "POL0001", Variables: []string{"Amount limit exceeded"}},
	ledger.WalletUnknown:  {MessageID: "POL0001", Variables: []string{"Unknown subscriber"}},
	ledger.TimedOut:       {MessageID: "POL0001", Variables: []string{"Payment timed out"}},
}

// Refused returns a final refusal of a payment for a reason, as the policy exception that the merchant gets.
func Refused(reason ledger.FailureReason, status int, cause error) operator.Result {
	exception, isKnown := refusals[reason]
	if !isKnown {
		exception = fault.OperatorException{MessageID: "POL0001", Variables: []string{"Payment refused"}}
	}
	exception.HTTPStatus = status
	f := &fault.Fault{Kind: fault.OperatorError, OperatorException: &exception, Cause: cause}
	return operator.Result{Outcome: operator.Refused, Fault: f, HTTPStatus: status}
}

// WithoutResponse returns the outcome of an exchange without a complete response; false if there is one.
func (x Exchange) WithoutResponse() (operator.Result, bool) {
	switch {
	case x.Err == nil:
		return operator.Result{}, false
	case !x.MayHaveSent:
		return NotApplied(fault.OperatorUnavailable, x.Err), true
	default:
		return Unknown(x.Err), true
	}
}
