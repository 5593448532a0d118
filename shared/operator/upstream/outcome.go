package upstream

import (
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// NotApplied returns an outcome that is certainly not applied.
func NotApplied(kind fault.Kind, cause error) operator.Result {
	return operator.Result{Outcome: operator.NotApplied, Fault: &fault.Fault{Kind: kind, Cause: cause}}
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

// Refused returns a final refusal of a payment for a reason, as the policy exception that the merchant gets.
func Refused(reason ledger.FailureReason, status int, cause error) operator.Result {
	exception := &fault.OperatorException{MessageID: "POL0001", HTTPStatus: status}
	switch reason {
	case ledger.RefusedByPayer:
		exception.MessageID = "POL0253"
	case ledger.NotEnoughFunds:
		exception.MessageID = "POL1000"
	case ledger.LimitReached:
		exception.Variables = []string{"Amount limit exceeded"}
	case ledger.WalletUnknown:
		exception.Variables = []string{"Unknown subscriber"}
	case ledger.TimedOut:
		exception.Variables = []string{"Payment timed out"}
	default:
		exception.Variables = []string{"Payment refused"}
	}
	f := &fault.Fault{Kind: fault.OperatorError, OperatorException: exception, Cause: cause}
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
