package oneapi

import (
	"encoding/json"
	"strings"

	"mobilegateway/shared/fault"
)

// MaxOperatorBody is the limit of an operator's error body in bytes; a longer one is not read.
const MaxOperatorBody = 64 << 10

// renderOperatorException makes the answer of an operator's exception that is passed on. Text and status are ours where our
// table has the messageId; else the text is the operator's, and the status 400 for SVC, 403 for POL. An
// operator's SVC0001 was certainly not applied: 503 with Retry-After where it said 503, else 502 (decision
// "error-table"). false for a messageId of another form.
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
		response.Header[headerRetryAfter] = kindRenderings[fault.OperatorUnavailable].header[headerRetryAfter]
	}
	return response, true
}

// exceptionOfMessageID tells the exception and the status of a messageId by its form, SVCnnnn or POLnnnn. The codes 900nnn are not
// passed on: between the operator and us they speak of our credentials, not of the merchant's (decision "outcomes").
func exceptionOfMessageID(id string) (exception Exception, status int, ok bool) {
	switch {
	case len(id) == 7 && strings.HasPrefix(id, "SVC") && isDigits(id[3:]):
		return ServiceException, 400, true
	case len(id) == 7 && strings.HasPrefix(id, "POL") && isDigits(id[3:]):
		return PolicyException, 403, true
	default:
		return "", 0, false
	}
}

func isDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

// DecodeRequestError recognises the error shape in a body that an operator sent: an object requestError with a serviceException or
// policyException that has a messageId of 1 to 32 letters, digits, "_" and "-". It tolerates more fields, a missing
// text, and variables that are no texts; text and variables come back bounded (256 characters, 8 variables) and
// printable. HTTPStatus is the caller's to set. false: the body is not of the shape, or over MaxOperatorBody.
func DecodeRequestError(body []byte) (*fault.OperatorException, bool) {
	if len(body) > MaxOperatorBody {
		return nil, false
	}
	var wire struct {
		RequestError map[string]json.RawMessage `json:"requestError"`
	}
	err := json.Unmarshal(body, &wire)
	if err != nil {
		return nil, false
	}
	for _, member := range []Exception{ServiceException, PolicyException} {
		decoded, ok := decodeException(wire.RequestError[string(member)])
		if ok {
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
	err := json.Unmarshal(raw, &wire)
	if err != nil {
		return nil, false
	}
	id := scalarText(wire.MessageID)
	if id == "" || len(id) > maxOperatorMessageID || strings.Trim(id, messageCharacters) != "" {
		return nil, false
	}
	return &fault.OperatorException{
		MessageID: id,
		Text:      truncatePrintable(scalarText(wire.Text), maxOperatorText),
		Variables: decodeVariables(wire.Variables),
	}, true
}

const messageCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// decodeVariables reads an array, or a single value as an array of one.
func decodeVariables(raw json.RawMessage) []string {
	var items []json.RawMessage
	err := json.Unmarshal(raw, &items)
	if err != nil {
		if single := scalarText(raw); single != "" {
			return boundedVariables([]string{single})
		}
		return []string{}
	}
	variables := []string{}
	for _, item := range items[:min(len(items), maxVariables)] {
		variables = append(variables, scalarText(item))
	}
	return boundedVariables(variables)
}

// scalarText gives a JSON text's characters, a number or a truth value as written, and "" for everything else.
func scalarText(raw json.RawMessage) string {
	var text string
	err := json.Unmarshal(raw, &text)
	if err == nil {
		return text
	}
	if len(raw) == 0 || strings.ContainsRune("{[n\"", rune(raw[0])) {
		return ""
	}
	return string(raw)
}

// boundedVariables is never nil.
func boundedVariables(values []string) []string {
	limited := []string{}
	for _, v := range values[:min(len(values), maxVariables)] {
		limited = append(limited, truncatePrintable(v, maxOperatorText))
	}
	return limited
}
