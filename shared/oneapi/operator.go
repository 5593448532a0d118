package oneapi

import (
	"encoding/json"
	"strings"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/fault"
)

// MaxOperatorBody is the limit of an operator's error body in bytes; a longer one is not read.
const MaxOperatorBody = 64 << 10

// renderOperatorException makes the response that passes on an operator's exception. Text and status are ours if our
// table has the messageId; else the text is the operator's, and the status 400 for SVC, 403 for POL. After an
// operator's SVC0001 the request was certainly not applied: 503 with Retry-After if its status was 503, else 502
// (decision "error-table"). It returns false for a messageId of another form.
func renderOperatorException(o *fault.OperatorException) (ErrorResponse, bool) {
	if o == nil {
		return ErrorResponse{}, false
	}
	exception, status, recognized := exceptionOfMessageID(o.MessageID)
	if !recognized {
		return ErrorResponse{}, false
	}
	text := truncatePrintable(o.Text, maxOperatorText)
	variables := boundedVariables(o.Variables)
	message, known := findMessage(o.MessageID)
	if known {
		text, exception, status = message.Text, message.Exception, message.Status
	}
	if text == "" {
		fallback, _ := findMessage("SVC0001")
		text, variables = fallback.Text, []string{o.MessageID}
	}
	if o.MessageID != "SVC0001" {
		return newErrorResponse(o.MessageID, text, exception, status, variables), true
	}
	if len(variables) == 0 {
		variables = []string{codePlatformInternal}
	}
	response := newErrorResponse(o.MessageID, text, exception, 502, variables)
	if o.HTTPStatus == 503 {
		response.Status = 503
		response.Header[HeaderRetryAfter] = kindRenderings[fault.OperatorUnavailable].header[HeaderRetryAfter]
	}
	return response, true
}

// exceptionOfMessageID returns the exception and the status of a messageId by its form, SVCnnnn or POLnnnn. The codes
// 900nnn are not passed on: they concern our credentials at the operator, not the merchant's (decision "outcomes").
func exceptionOfMessageID(id string) (exception Exception, status int, ok bool) {
	if len(id) != 7 || !ascii.IsDigits(id[3:]) {
		return "", 0, false
	}
	switch id[:3] {
	case "SVC":
		return ServiceException, 400, true
	case "POL":
		return PolicyException, 403, true
	}
	return "", 0, false
}

// DecodeRequestError decodes an operator's body of the error shape: an object requestError with a serviceException or a
// policyException. Its messageId must have 1 to 32 letters, digits, "_" and "-". More fields, a missing text, and
// variables of other types are accepted. Text and variables are bounded (256 characters, 8 variables) and made
// printable. The caller sets HTTPStatus. It returns false for a body of another shape, or over MaxOperatorBody.
func DecodeRequestError(body []byte) (*fault.OperatorException, bool) {
	if len(body) > MaxOperatorBody {
		return nil, false
	}
	var wire struct {
		RequestError map[string]json.RawMessage `json:"requestError"`
	}
	if json.Unmarshal(body, &wire) != nil {
		return nil, false
	}
	for _, member := range []Exception{ServiceException, PolicyException} {
		if decoded, ok := decodeException(wire.RequestError[string(member)]); ok {
			return decoded, true
		}
	}
	return nil, false
}

func decodeException(raw json.RawMessage) (*fault.OperatorException, bool) {
	if len(raw) == 0 {
		return nil, false
	}
	var wire struct {
		MessageID json.RawMessage `json:"messageId"`
		Text      json.RawMessage `json:"text"`
		Variables json.RawMessage `json:"variables"`
	}
	if json.Unmarshal(raw, &wire) != nil {
		return nil, false
	}
	id := scalarText(wire.MessageID)
	if len(id) > maxOperatorMessageID || !ascii.ConsistsOf(id, messageCharacters) {
		return nil, false
	}
	return &fault.OperatorException{
		MessageID: id,
		Text:      truncatePrintable(scalarText(wire.Text), maxOperatorText),
		Variables: decodeVariables(wire.Variables),
	}, true
}

const messageCharacters = ascii.Letters + ascii.Digits + "_-"

// decodeVariables reads an array, or a single value as an array of one.
func decodeVariables(raw json.RawMessage) []string {
	var items [maxVariables]json.RawMessage // encoding/json drops the others
	if json.Unmarshal(raw, &items) != nil {
		if single := scalarText(raw); single != "" {
			return boundedVariables([]string{single})
		}
		return []string{}
	}
	variables := []string{}
	for _, item := range items {
		if item != nil {
			variables = append(variables, scalarText(item))
		}
	}
	return boundedVariables(variables)
}

// scalarText returns a JSON text's characters, a number or a truth value as written, and "" for every other value.
func scalarText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	if len(raw) == 0 || strings.ContainsRune("{[n\"", rune(raw[0])) {
		return ""
	}
	return string(raw)
}

// boundedVariables cuts the variables to their limits. It never returns nil.
func boundedVariables(values []string) []string {
	limited := []string{}
	for _, v := range values[:min(len(values), maxVariables)] {
		limited = append(limited, truncatePrintable(v, maxOperatorText))
	}
	return limited
}
