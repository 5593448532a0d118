package oneapi

import (
	"maps"
	"strconv"
	"unicode"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/strictjson"
)

// The limits of the values in an error, in characters.
const (
	maxVariables         = 8    // variables of an operator's exception
	maxOperatorText      = 256  // an operator's text, and each of its variables
	maxGatewayVariable   = 1024 // a part, a value or a list of valid values
	maxOperatorMessageID = 32   // an operator's messageId
)

// ErrorResponse is a rendered error.
type ErrorResponse struct {
	// Status is the HTTP status.
	Status int
	// Header has Content-Type and the headers of the kind: Retry-After (seconds), WWW-Authenticate, Location,
	// HeaderErrorReason, X-Error-Part.
	Header map[string]string
	// Body is the JSON body.
	Body []byte
	// MessageID is the messageId in the body, for the log.
	MessageID string
}

// variableLayout makes a kind's variables of its row's internal code, the message part and the value.
type variableLayout func(code, part, value string) []string

func noVariables(_, _, _ string) []string                     { return []string{} }
func codeOnly(code, _, _ string) []string                     { return []string{code} }
func partOnly(_, part, _ string) []string                     { return []string{part} }
func partThenValue(_, part, value string) []string            { return []string{part, value} }
func valueOnly(_, _, value string) []string                   { return []string{value} }
func valueThenPart(_, part, value string) []string            { return []string{value, part} }
func codeThenValueThenPart(code, part, value string) []string { return []string{code, value, part} }

// kindRendering is a row of the table of kinds.
type kindRendering struct {
	messageID string
	status    int
	layout    variableLayout
	pdkCode   string
	header    header
}

type header = map[string]string

// Headers of error responses: HeaderErrorReason has a fault's Reason, headerErrorPart the part that a reason is about,
// HeaderRetryAfter the seconds to wait.
const (
	HeaderErrorReason     = "X-Error-Reason"
	headerErrorPart       = "X-Error-Part"
	HeaderRetryAfter      = "Retry-After"
	headerWWWAuthenticate = "WWW-Authenticate" // RFC 6750
)

// kindRenderings has one row for each kind of fault (decision "error-table"). By that decision, some statuses differ
// from the message's own. OperatorError is not here: its response is made from the operator's exception.
var kindRenderings = map[fault.Kind]kindRendering{
	fault.Internal:           {"SVC0001", 500, codeOnly, codeInternal, nil},
	fault.RouteNotFound:      {"900906", 404, noVariables, "", nil},
	fault.BodyTooLarge:       {"SVC0002", 413, partOnly, "", nil},
	fault.MissingCredentials: {"900902", 401, noVariables, "", header{headerWWWAuthenticate: `Bearer realm="gateway"`}},
	fault.InvalidCredentials: {"900901", 401, noVariables, "",
		header{headerWWWAuthenticate: `Bearer realm="gateway", error="invalid_token"`}},
	fault.UnsupportedMediaType: {"SVC0002", 415, partOnly, "", nil},
	fault.MissingPart:          {"SVC0002", 400, partOnly, "", nil},
	fault.InvalidPart:          {"SVC0002", 400, partOnly, "", nil},
	fault.ValueNotAllowed:      {"SVC0003", 400, partThenValue, "", nil},
	fault.InvalidAddress:       {"SVC0004", 400, valueOnly, "", nil},
	fault.InvalidPathAddress:   {"SVC0004", 404, valueOnly, "", nil},
	fault.MessageTooLong:       {"SVC0280", 400, valueOnly, "", nil},
	fault.Forbidden:            {"900908", 403, noVariables, "", nil},
	fault.RateLimited:          {"900800", 429, noVariables, "", header{HeaderRetryAfter: "1"}},
	fault.DailyLimitExceeded:   {"POL0001", 403, codeThenValueThenPart, codeDailyLimit, nil},
	fault.NotFound:             {"SVC0002", 404, partOnly, "", nil},
	fault.DuplicateKey:         {"SVC0005", 409, valueThenPart, "", nil},
	fault.RequestInProgress:    {"SVC0005", 409, valueThenPart, "", header{HeaderRetryAfter: "1"}},
	fault.IntegrationRejected:  {"SVC0001", 502, codeOnly, codeIntegration, nil},
	fault.OperatorUnavailable:  {"SVC0001", 503, codeOnly, codePlatformDown, header{HeaderRetryAfter: "5"}},
	fault.OutcomeUnknown:       {"SVC0001", 504, codeOnly, codeUnresponsive, header{HeaderRetryAfter: "5"}},
}

// Render makes the response to an error: by its kind if it is a *fault.Fault, else (also for nil) a bare internal
// error. It never shows the cause.
func Render(err error) ErrorResponse {
	f := fault.FromError(err)
	if f == nil {
		f = fault.New(fault.Internal)
	}
	if f.Kind == fault.OperatorError {
		if response, ok := renderOperatorException(f.OperatorException); ok {
			return response
		}
		// No part of the operator's exception can be passed on: its refusal concerns us, not the merchant.
		f = fault.New(fault.IntegrationRejected)
	}
	row, known := kindRenderings[f.Kind]
	if !known {
		f, row = fault.New(fault.Internal), kindRenderings[fault.Internal]
	}
	message, _ := findMessage(row.messageID)
	part, value := truncatePrintable(f.Part, maxGatewayVariable), truncatePrintable(f.Value, maxGatewayVariable)
	variables := row.layout(row.pdkCode, part, value)
	response := newErrorResponse(message.ID, message.Text, message.Exception, row.status, variables)
	maps.Copy(response.Header, row.header)
	if (f.Kind == fault.RateLimited || f.Kind == fault.OperatorUnavailable) && f.RetryAfter > 0 {
		response.Header[HeaderRetryAfter] = strconv.Itoa(f.RetryAfter)
	}
	if f.Location != "" {
		response.Header["Location"] = f.Location
	}
	if f.Reason != "" {
		response.Header[HeaderErrorReason] = f.Reason
		if part != "" {
			response.Header[headerErrorPart] = part
		}
	}
	return response
}

// wireException is the wire form of an error. Exactly one member of requestError is set; Variables is never null.
type wireException struct {
	MessageID string   `json:"messageId"`
	Text      string   `json:"text"`
	Variables []string `json:"variables"`
}

func newErrorResponse(id, text string, exception Exception, status int, variables []string) ErrorResponse {
	wire := wireException{MessageID: id, Text: text, Variables: variables}
	body := map[string]map[Exception]wireException{"requestError": {exception: wire}}
	return ErrorResponse{
		Status:    status,
		Header:    map[string]string{"Content-Type": "application/json"},
		Body:      strictjson.Marshal(body),
		MessageID: id,
	}
}

// truncatePrintable cuts a text to a number of characters, and replaces those that are not printable by a space.
func truncatePrintable(text string, limit int) string {
	characters := []rune(text)
	characters = characters[:min(len(characters), limit)]
	for i, char := range characters {
		if !unicode.IsPrint(char) {
			characters[i] = ' '
		}
	}
	return string(characters)
}
