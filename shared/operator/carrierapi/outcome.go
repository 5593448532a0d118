package carrierapi

import (
	"net/http"
	"slices"
	"strings"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// duplicateMessageID is the message id of a repeated key.
const duplicateMessageID = "SVC0005"

// finalRefusals are the message ids of a final refusal of a transaction.
var finalRefusals = []string{"POL0253", "POL1000", "POL0001", "SVC0270"}

// successParser reads a complete success from the body of a 2xx response; false if a required field is absent.
type successParser func(response *strictjson.Reader) (operator.PayResponse, bool)

// classifyExchange maps an exchange to its outcome, in the order of the table of decision "outcomes".
func classifyExchange(x upstream.Exchange, parseSuccess successParser) operator.PayResponse {
	if x.IsSuccess() {
		if response, isDocument := x.Document(); isDocument {
			if success, ok := parseSuccess(response); ok {
				success.Outcome = operator.Succeeded
				return success
			}
		}
	}
	return operator.PayResponse{Result: classifyFailure(x)}
}

// classifyFailure maps an exchange without a complete success.
func classifyFailure(x upstream.Exchange) operator.Result {
	if result, isWithout := x.WithoutResponse(); isWithout {
		return result
	}
	if x.IsSuccess() {
		return upstream.Unknown(logsafe.Errorf("the operator's response %d lacks fields of a success", x.Status))
	}
	exception, isRequestError := requestError(x)
	if !isRequestError {
		return upstream.Unknown(logsafe.Errorf("the operator's response %d has no requestError", x.Status))
	}
	result := classifyException(x, exception)
	result.Code = operator.KnownCode(exception.MessageID, oneapi.IsMessageID(exception.MessageID))
	return result
}

// classifyException maps a response with a requestError.
func classifyException(x upstream.Exchange, exception *fault.OperatorException) operator.Result {
	cause := logsafe.Errorf("the operator responded %d %s", x.Status, logsafe.Code(exception.MessageID))
	isClientError := x.Status >= 400 && x.Status <= 499
	switch {
	case isClientError && slices.Contains(finalRefusals, exception.MessageID):
		f := &fault.Fault{Kind: fault.OperatorError, OperatorException: exception, Cause: cause}
		return operator.Result{Outcome: operator.Refused, Fault: f}
	case x.Status == http.StatusConflict, isClientError && exception.MessageID == duplicateMessageID:
		// The operator knows the key. With Retry-After the first call is still in progress; otherwise it was sent
		// before.
		result := upstream.Unknown(cause)
		if exception.MessageID == duplicateMessageID && x.Header.Get("Retry-After") == "" {
			result.DuplicateKey, result.OperatorReference = true, smsRequestID(x.Header.Get("Location"))
		}
		return result
	case x.Status == http.StatusServiceUnavailable, x.Status == http.StatusTooManyRequests:
		return upstream.NotApplied(fault.OperatorUnavailable, cause)
	case isClientError && namesFilledPart(exception.Variables):
		return upstream.NotApplied(fault.IntegrationRejected, cause)
	case isClientError && x.Status != http.StatusUnauthorized && concernsRequest(exception.MessageID):
		result := upstream.NotApplied(fault.OperatorError, cause)
		result.Fault.OperatorException = exception
		return result
	case isClientError:
		return upstream.NotApplied(fault.IntegrationRejected, cause)
	default:
		return upstream.Unknown(cause)
	}
}

// concernsRequest reports whether a message id (SVC or POL and four digits) concerns the merchant's request. Any other
// (9009xx) concerns our credentials at the operator.
func concernsRequest(id string) bool {
	family := strings.HasPrefix(id, "SVC") || strings.HasPrefix(id, "POL")
	return family && len(id) == 7 && ascii.IsDigits(id[3:])
}

// smsRequestID returns the id in an SMS request's resourceURL, ".../requests/<id>/deliveryInfos". In another form it is
// the last segment. "" gives "".
func smsRequestID(resourceURL string) string {
	trimmed := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(resourceURL, "/"), "/deliveryInfos"), "/")
	id := trimmed[strings.LastIndex(trimmed, "/")+1:]
	if len(id) > upstream.MaxFieldLength {
		return ""
	}
	return id
}

// requestError reads the requestError of a response. An ambiguous body (a duplicate key) has none, because a final
// refusal must be certain.
func requestError(x upstream.Exchange) (*fault.OperatorException, bool) {
	found, isRequestError := oneapi.DecodeRequestError(x.Body)
	if _, isDocument := x.Document(); !isDocument || !isRequestError {
		return nil, false
	}
	found.HTTPStatus = x.Status
	return found, true
}

// outcomeAfterRetry corrects the outcome of a retry after an exchange that may have been applied. Only a success or a
// final refusal also applies to the first exchange (decision "unknown-sticks"). A duplicate proves that the first was
// applied.
func outcomeAfterRetry(result operator.Result) operator.Result {
	switch {
	case result.Outcome == operator.NotApplied:
		return upstream.Unknown(logsafe.Errorf("the connection of the first attempt was cut: %w", result.Fault.Cause))
	case result.DuplicateKey:
		result.Outcome, result.Fault = operator.Succeeded, nil
	}
	return result
}
