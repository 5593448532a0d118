package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
)

// duplicateMessageID is the message id of a key that the operator has seen before.
const duplicateMessageID = "SVC0005"

// successParser reads a complete success out of a 2xx answer; false where a field that the operation needs is absent.
type successParser func(x exchange) (operator.Result, bool)

// classifyExchange maps an exchange to its outcome: the table of decision "outcomes", in its order.
func classifyExchange(x exchange, parseSuccess successParser) operator.Result {
	if x.err != nil {
		if !x.mayHaveSent {
			return notApplied(fault.OperatorUnavailable, x.err)
		}
		return outcomeUnknown(x.err)
	}
	if x.status >= 200 && x.status <= 299 {
		if result, ok := parseSuccess(x); ok {
			result.Outcome = operator.Succeeded
			return result
		}
		return outcomeUnknown(fmt.Errorf("the operator's answer %d lacks what a success carries", x.status))
	}
	exception, isRequestError := x.requestError()
	if !isRequestError {
		return outcomeUnknown(fmt.Errorf("the operator's answer %d carries no requestError", x.status))
	}
	return classifyException(x, exception)
}

// classifyException maps an answer that carries a requestError.
func classifyException(x exchange, exception *fault.OperatorException) operator.Result {
	cause := fmt.Errorf("the operator answered %d %s", x.status, exception.MessageID)
	isClientError := x.status >= 400 && x.status <= 499
	switch {
	case isClientError && isFinalRefusal(exception.MessageID):
		f := &fault.Fault{Kind: fault.OperatorError, OperatorException: exception, Cause: cause}
		return operator.Result{Outcome: operator.Refused, Fault: f}
	case x.status == http.StatusConflict, isClientError && exception.MessageID == duplicateMessageID:
		// The key is known there. With Retry-After it is still being worked on; without, it was sent before.
		result := outcomeUnknown(cause)
		if exception.MessageID == duplicateMessageID && x.header.Get("Retry-After") == "" {
			result.DuplicateKey, result.OperatorReference = true, smsRequestID(x.header.Get("Location"))
		}
		return result
	case x.status == http.StatusServiceUnavailable, x.status == http.StatusTooManyRequests:
		return notApplied(fault.OperatorUnavailable, cause)
	case isClientError && x.status != http.StatusUnauthorized && concernsRequest(exception.MessageID):
		result := notApplied(fault.OperatorError, cause)
		result.Fault.OperatorException = exception
		return result
	case isClientError:
		return notApplied(fault.IntegrationRejected, cause)
	default:
		return outcomeUnknown(cause)
	}
}

// isFinalRefusal reports whether a message id refuses a transaction for good.
func isFinalRefusal(id string) bool {
	switch id {
	case "POL0253", "POL1000", "POL0001", "SVC0270":
		return true
	}
	return false
}

// concernsRequest reports whether a message id, SVC or POL and four digits, speaks of the request, which the merchant wrote; any
// other (9009xx) speaks of our standing at the operator.
func concernsRequest(id string) bool {
	family := strings.HasPrefix(id, "SVC") || strings.HasPrefix(id, "POL")
	return family && len(id) == 7 && strings.Trim(id[3:], "0123456789") == ""
}

// outcomeAfterRetry corrects an outcome that was reached on a re-send after an exchange that may have been applied: only a
// success or a final refusal says anything about that one (decision "unknown-sticks"), and a duplicate says that it was
// applied.
func outcomeAfterRetry(result operator.Result) operator.Result {
	switch {
	case result.Outcome == operator.NotApplied:
		return outcomeUnknown(fmt.Errorf("the first send was cut: %w", result.Fault.Cause))
	case result.DuplicateKey:
		return operator.Result{Outcome: operator.Succeeded, DuplicateKey: true, OperatorReference: result.OperatorReference}
	}
	return result
}

// notApplied is an outcome that is certainly not applied.
func notApplied(kind fault.Kind, cause error) operator.Result {
	return operator.Result{Outcome: operator.NotApplied, Fault: &fault.Fault{Kind: kind, Cause: cause}}
}

// outcomeUnknown is an outcome that may have been applied.
func outcomeUnknown(cause error) operator.Result {
	if cause == nil {
		cause = errors.New("the operator's answer says nothing")
	}
	return operator.Result{Outcome: operator.Unknown, Fault: &fault.Fault{Kind: fault.OutcomeUnknown, Cause: cause}}
}
