package orangesms

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/smstext"
)

// classifyMessage maps a response to a message to the recipient (an address of the form tel:+225...). A 409 is not a
// duplicate here, because the platform has no key.
func classifyMessage(x upstream.Exchange, recipient string) operator.Result {
	cause := logsafe.Errorf("the SMS request responded %d", x.Status)
	doc, isDocument := x.Document()
	isBusy := x.Status == http.StatusTooManyRequests || x.Status == http.StatusServiceUnavailable
	switch {
	case x.IsSuccess() && isDocument:
		resource, _ := doc.OptionalText("outboundSMSMessageRequest.resourceURL", upstream.MaxURLLength)
		if id := requestID(resource); id != "" {
			return operator.Result{Outcome: operator.Succeeded, OperatorReference: id}
		}
		return upstream.Unknown(logsafe.Errorf("%w without a resourceURL", cause))
	case isTokenRefusal(x), x.Status == http.StatusNotFound && gatewayCode(x) == "60":
		result := upstream.NotApplied(fault.IntegrationRejected,
			logsafe.Errorf("%w with code %s", cause, logsafe.Code(gatewayCode(x))))
		result.Code = gatewayCode(x)
		return result
	case isBusy && gatewayCode(x) != "":
		return upstream.NotApplied(fault.OperatorUnavailable, cause)
	case !isDocument:
		return upstream.Unknown(cause)
	}
	if exception, isRequestError := oneapi.DecodeRequestError(x.Body); isRequestError {
		result := classifyException(x.Status, exception, recipient)
		result.Code = operator.KnownCode(exception.MessageID,
			exception.MessageID == "POL1009" || oneapi.IsMessageID(exception.MessageID))
		return result
	}
	return upstream.Unknown(cause)
}

// classifyException maps a response with a requestError. An exception about the merchant's message is a final refusal,
// one about the account is not.
func classifyException(status int, exception *fault.OperatorException, recipient string) operator.Result {
	id := exception.MessageID
	cause := logsafe.Errorf("the SMS request responded %d %s", status, logsafe.Code(id))
	isRecipient := id == "SVC0004" || id == "SVC0002" && namesRecipient(exception.Variables, recipient)
	switch key := strconv.Itoa(status) + " " + id; {
	case status == http.StatusBadRequest && isRecipient:
		return refused(status, id, partRecipient, cause)
	case key == "400 SVC0280":
		return refused(status, id, strconv.Itoa(smstext.MaxCharacters), cause)
	case key == "403 POL0001": // the bundle is empty or expired, or there is no contract
		return upstream.NotApplied(fault.IntegrationRejected, logsafe.Errorf("%w: %w", operator.ErrNoUnits, cause))
	case key == "400 SVC0002", key == "403 POL1009":
		return upstream.NotApplied(fault.IntegrationRejected, cause)
	}
	return upstream.Unknown(logsafe.Errorf("the SMS request responded %d with an exception that proves nothing",
		status))
}

// refused returns a final refusal. variable is ours, because the platform's may contain the recipient's number.
func refused(status int, id, variable string, cause error) operator.Result {
	exception := &fault.OperatorException{MessageID: id, Variables: []string{variable}, HTTPStatus: status}
	f := &fault.Fault{Kind: fault.OperatorError, OperatorException: exception, Cause: cause}
	return operator.Result{Outcome: operator.Refused, Fault: f}
}

// namesRecipient reports whether an exception names the recipient: by its part, or by its number.
func namesRecipient(variables []string, recipient string) bool {
	number := strings.TrimPrefix(recipient, "tel:+")
	return slices.ContainsFunc(variables, func(variable string) bool {
		part := variable[strings.LastIndex(variable, ".")+1:]
		return strings.EqualFold(part, "address") || number != "" && strings.Contains(variable, number)
	})
}

// isTokenRefusal reports whether the API gateway in front refused the access token: invalid (41) or expired (42).
// Nothing was sent then.
func isTokenRefusal(x upstream.Exchange) bool {
	code := gatewayCode(x)
	return x.Status == http.StatusUnauthorized && (code == "41" || code == "42")
}

// gatewayCode returns the code of the API gateway's own error, which has a code of at most 4 digits and a message; ""
// for another response.
func gatewayCode(x upstream.Exchange) string {
	code := x.ErrorCode("code")
	doc, isDocument := x.Document()
	if !isDocument || upstream.Text(doc, "message") == "" || len(code) > 4 || !ascii.IsDigits(code) {
		return ""
	}
	return code
}

// requestID returns the id in ".../requests/<id>"; "" for an address of another form.
func requestID(resourceURL string) string {
	_, id, _ := strings.Cut(resourceURL, "/requests/")
	id = strings.TrimSuffix(id, "/")
	if len(id) > upstream.MaxFieldLength || strings.Contains(id, "/") {
		return ""
	}
	return id
}
