package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/strictjson"
)

// duplicateMessageID is the message id of a repeated key.
const duplicateMessageID = "SVC0005"

// finalRefusals are the message ids of a final refusal of a transaction.
var finalRefusals = []string{"POL0253", "POL1000", "POL0001", "SVC0270"}

// successParser reads a complete success from the body of a 2xx response; false if a required field is absent.
type successParser func(response *strictjson.Reader) (operator.Result, bool)

// classifyExchange maps an exchange to its outcome, in the order of the table of decision "outcomes".
func classifyExchange(x exchange, parseSuccess successParser) operator.Result {
	if x.err != nil {
		if !x.mayHaveSent {
			return notApplied(fault.OperatorUnavailable, x.err)
		}
		return outcomeUnknown(x.err)
	}
	if x.status >= 200 && x.status <= 299 {
		if response, err := strictjson.Parse(x.body); err == nil {
			if result, ok := parseSuccess(response); ok {
				result.Outcome = operator.Succeeded
				return result
			}
		}
		return outcomeUnknown(fmt.Errorf("the operator's response %d lacks fields of a success", x.status))
	}
	exception, isRequestError := x.requestError()
	if !isRequestError {
		return outcomeUnknown(fmt.Errorf("the operator's response %d has no requestError", x.status))
	}
	return classifyException(x, exception)
}

// classifyException maps a response with a requestError.
func classifyException(x exchange, exception *fault.OperatorException) operator.Result {
	cause := fmt.Errorf("the operator responded %d %s", x.status, exception.MessageID)
	isClientError := x.status >= 400 && x.status <= 499
	switch {
	case isClientError && slices.Contains(finalRefusals, exception.MessageID):
		f := &fault.Fault{Kind: fault.OperatorError, OperatorException: exception, Cause: cause}
		return operator.Result{Outcome: operator.Refused, Fault: f}
	case x.status == http.StatusConflict, isClientError && exception.MessageID == duplicateMessageID:
		// The operator knows the key. With Retry-After the first call is still in progress; otherwise it was sent
		// before.
		result := outcomeUnknown(cause)
		if exception.MessageID == duplicateMessageID && x.header.Get("Retry-After") == "" {
			result.DuplicateKey, result.OperatorReference = true, smsRequestID(x.header.Get("Location"))
		}
		return result
	case x.status == http.StatusServiceUnavailable, x.status == http.StatusTooManyRequests:
		return notApplied(fault.OperatorUnavailable, cause)
	case isClientError && namesFilledPart(exception.Variables):
		return notApplied(fault.IntegrationRejected, cause)
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

// concernsRequest reports whether a message id (SVC or POL and four digits) concerns the merchant's request. Any other
// (9009xx) concerns our credentials at the operator.
func concernsRequest(id string) bool {
	family := strings.HasPrefix(id, "SVC") || strings.HasPrefix(id, "POL")
	return family && len(id) == 7 && strings.Trim(id[3:], "0123456789") == ""
}

// outcomeAfterRetry corrects the outcome of a retry after an exchange that may have been applied. Only a success or a
// final refusal also applies to the first exchange (decision "unknown-sticks"). A duplicate proves that the first was
// applied.
func outcomeAfterRetry(result operator.Result) operator.Result {
	switch {
	case result.Outcome == operator.NotApplied:
		return outcomeUnknown(fmt.Errorf("the connection of the first attempt was cut: %w", result.Fault.Cause))
	case result.DuplicateKey:
		result.Outcome, result.Fault = operator.Succeeded, nil
	}
	return result
}

// notApplied returns an outcome that is certainly not applied.
func notApplied(kind fault.Kind, cause error) operator.Result {
	return operator.Result{Outcome: operator.NotApplied, Fault: &fault.Fault{Kind: kind, Cause: cause}}
}

// outcomeUnknown returns an outcome that may have been applied.
func outcomeUnknown(cause error) operator.Result {
	return operator.Result{Outcome: operator.Unknown, Fault: &fault.Fault{Kind: fault.OutcomeUnknown, Cause: cause}}
}
