package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
)

// duplicateID is the message id of a key that the operator has seen before.
const duplicateID = "SVC0005"

// reader reads a complete success out of a 2xx answer; false where a field that the operation needs is absent.
type reader func(x exchange) (operator.Result, bool)

// judge maps an exchange to its outcome: the table of decision "outcomes", in its order.
func judge(x exchange, complete reader) operator.Result {
	if x.err != nil {
		if !x.wrote {
			return released(fault.OperatorDown, x.err)
		}
		return unknown(x.err)
	}
	if x.status >= 200 && x.status <= 299 {
		if result, ok := complete(x); ok {
			result.Outcome = operator.Done
			return result
		}
		return unknown(fmt.Errorf("the operator's answer %d lacks what a success carries", x.status))
	}
	exception, carries := x.exception()
	if !carries {
		return unknown(fmt.Errorf("the operator's answer %d carries no requestError", x.status))
	}
	return judgeException(x, exception)
}

// judgeException maps an answer that carries a requestError.
func judgeException(x exchange, exception *fault.OperatorFault) operator.Result {
	cause := fmt.Errorf("the operator answered %d %s", x.status, exception.MessageID)
	refusal := x.status >= 400 && x.status <= 499
	switch {
	case refusal && finalRefusal(exception.MessageID):
		f := &fault.Fault{Kind: fault.OperatorError, Operator: exception, Cause: cause}
		return operator.Result{Outcome: operator.Refused, Fault: f}
	case x.status == http.StatusConflict, refusal && exception.MessageID == duplicateID:
		// The key is known there. With Retry-After it is still being worked on; without, it was sent before.
		result := unknown(cause)
		if exception.MessageID == duplicateID && x.header.Get("Retry-After") == "" {
			result.Duplicate, result.OperatorReference = true, requestID(x.header.Get("Location"))
		}
		return result
	case x.status == http.StatusServiceUnavailable, x.status == http.StatusTooManyRequests:
		return released(fault.OperatorDown, cause)
	case refusal && x.status != http.StatusUnauthorized && passedOn(exception.MessageID):
		result := released(fault.OperatorError, cause)
		result.Fault.Operator = exception
		return result
	case refusal:
		return released(fault.OperatorRefusedUs, cause)
	default:
		return unknown(cause)
	}
}

// finalRefusal reports whether a message id refuses a transaction for good.
func finalRefusal(id string) bool {
	switch id {
	case "POL0253", "POL1000", "POL0001", "SVC0270":
		return true
	}
	return false
}

// passedOn reports whether a message id, SVC or POL and four digits, speaks of the request, which the merchant wrote; any
// other (9009xx) speaks of our standing at the operator.
func passedOn(id string) bool {
	family := strings.HasPrefix(id, "SVC") || strings.HasPrefix(id, "POL")
	return family && len(id) == 7 && strings.Trim(id[3:], "0123456789") == ""
}

// afterUnknown corrects an outcome that was reached on a re-send after an exchange that may have been applied: only a
// success or a final refusal says anything about that one (decision "unknown-sticks"), and a duplicate says that it was
// applied.
func afterUnknown(result operator.Result) operator.Result {
	switch {
	case result.Outcome == operator.Released:
		return unknown(fmt.Errorf("the first send was cut: %w", result.Fault.Cause))
	case result.Duplicate:
		return operator.Result{Outcome: operator.Done, Duplicate: true, OperatorReference: result.OperatorReference}
	}
	return result
}

// released is an outcome that is certainly not applied.
func released(kind fault.Kind, cause error) operator.Result {
	return operator.Result{Outcome: operator.Released, Fault: &fault.Fault{Kind: kind, Cause: cause}}
}

// unknown is an outcome that may have been applied.
func unknown(cause error) operator.Result {
	if cause == nil {
		cause = errors.New("the operator's answer says nothing")
	}
	return operator.Result{Outcome: operator.Unknown, Fault: &fault.Fault{Kind: fault.OutcomeUnknown, Cause: cause}}
}
