package oneapi

import (
	"maps"
	"strconv"
	"strings"
	"unicode"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/strictjson"
)

// The limits of what is written into an error, in characters.
const (
	maxVariables       = 8    // variables of an operator's exception
	maxOperatorText    = 256  // an operator's text, and each of its variables
	maxOwnVariable     = 1024 // a part, a value or a list of valid values
	maxOperatorMessage = 32   // an operator's messageId
)

// Answer is a rendered error.
type Answer struct {
	// Status is the HTTP status.
	Status int
	// Header holds Content-Type and what the kind asks for: Retry-After (seconds), WWW-Authenticate, Location.
	Header map[string]string
	// Body is the JSON body.
	Body []byte
	// ID is the messageId in the body, for the log.
	ID string
}

// variable says where a kind's variables come from.
type variable int

const (
	none          variable = iota
	code                   // the row's internal code
	part                   // the message part
	partAndValue           // the message part and the valid values
	value                  // the value
	valueAndPart           // the key and its message part
	codeValuePart          // the row's code, the value and the part
)

// rendering is a row of the table of kinds.
type rendering struct {
	messageID string
	status    int
	variables variable
	code      string
	header    map[string]string
}

const (
	retryAfter   = "Retry-After"      // seconds
	authenticate = "WWW-Authenticate" // RFC 6750
)

// renderings has one row for each kind of fault (decision "error-table"). The status differs from the message's own
// where the decision says so. OperatorError is not here: its answer is made from the operator's exception.
var renderings = map[fault.Kind]rendering{
	fault.Internal:          {"SVC0001", 500, code, codeInternal, nil},
	fault.NoRoute:           {"900906", 404, none, "", nil},
	fault.TooLarge:          {"SVC0002", 413, part, "", nil},
	fault.NoCredentials:     {"900902", 401, none, "", map[string]string{authenticate: `Bearer realm="gateway"`}},
	fault.BadCredentials:    {"900901", 401, none, "", map[string]string{authenticate: `Bearer realm="gateway", error="invalid_token"`}},
	fault.MediaType:         {"SVC0002", 415, part, "", nil},
	fault.Missing:           {"SVC0002", 400, part, "", nil},
	fault.Invalid:           {"SVC0002", 400, part, "", nil},
	fault.NotAllowed:        {"SVC0003", 400, partAndValue, "", nil},
	fault.Address:           {"SVC0004", 400, value, "", nil},
	fault.PathAddress:       {"SVC0004", 404, value, "", nil},
	fault.TooLong:           {"SVC0280", 400, value, "", nil},
	fault.Forbidden:         {"900908", 403, none, "", nil},
	fault.Throttled:         {"900800", 429, none, "", map[string]string{retryAfter: "1"}},
	fault.OverLimit:         {"POL0001", 403, codeValuePart, codeDailyLimit, nil},
	fault.NotFound:          {"SVC0002", 404, part, "", nil},
	fault.Duplicate:         {"SVC0005", 409, valueAndPart, "", nil},
	fault.InFlight:          {"SVC0005", 409, valueAndPart, "", map[string]string{retryAfter: "1"}},
	fault.OperatorRefusedUs: {"SVC0001", 502, code, codeIntegration, nil},
	fault.OperatorDown:      {"SVC0001", 503, code, codePlatformDown, map[string]string{retryAfter: "5"}},
	fault.OutcomeUnknown:    {"SVC0001", 504, code, codeUnresponsive, map[string]string{retryAfter: "5"}},
}

// Render makes the answer of an error: of a *fault.Fault by its kind, of anything else (nil included) a bare internal
// error. The cause never shows.
func Render(err error) Answer {
	f := fault.As(err)
	if f == nil {
		f = fault.Of(fault.Internal)
	}
	if f.Kind == fault.OperatorError {
		answer, ok := renderOperator(f.Operator)
		if ok {
			return answer
		}
		// Nothing of what the operator sent can be passed on: it refused us, and we do not know a better word.
		f = fault.Of(fault.OperatorRefusedUs)
	}
	row, known := renderings[f.Kind]
	if !known {
		f, row = fault.Of(fault.Internal), renderings[fault.Internal]
	}
	message, _ := messageByID(row.messageID)
	answer := write(message.ID, message.Text, message.Exception, row.status, row.values(f))
	maps.Copy(answer.Header, row.header)
	if f.Kind == fault.Throttled && f.RetryAfter > 0 {
		answer.Header[retryAfter] = strconv.Itoa(f.RetryAfter)
	}
	if f.Location != "" {
		answer.Header["Location"] = f.Location
	}
	return answer
}

// values makes a kind's variables.
func (r rendering) values(f *fault.Fault) []string {
	name, content := printable(f.Part, maxOwnVariable), printable(f.Value, maxOwnVariable)
	switch r.variables {
	case code:
		return []string{r.code}
	case part:
		return []string{name}
	case partAndValue:
		return []string{name, content}
	case value:
		return []string{content}
	case codeValuePart:
		return []string{r.code, content, name}
	case valueAndPart:
		return []string{content, name}
	default:
		return []string{}
	}
}

// The wire form of an error. Exactly one member of requestError is set; variables is never null.
type (
	wireBody struct {
		RequestError map[Exception]wireException `json:"requestError"`
	}
	wireException struct {
		MessageID string   `json:"messageId"`
		Text      string   `json:"text"`
		Variables []string `json:"variables"`
	}
)

// write makes an answer of its parts.
func write(id, text string, exception Exception, status int, variables []string) Answer {
	body := wireBody{RequestError: map[Exception]wireException{exception: {MessageID: id, Text: text, Variables: variables}}}
	return Answer{
		Status: status,
		Header: map[string]string{"Content-Type": "application/json"},
		Body:   strictjson.Marshal(body),
		ID:     id,
	}
}

// printable cuts a text to a number of characters and puts a space in the place of those that are not to be printed.
func printable(text string, limit int) string {
	count := 0
	return strings.Map(func(char rune) rune {
		count++
		if count > limit {
			return -1
		}
		if !unicode.IsPrint(char) {
			return ' '
		}
		return char
	}, text)
}
