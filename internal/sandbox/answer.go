package sandbox

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

const jsonType = "application/json"

// answer is what the operator answers, or would have answered.
type answer struct {
	Status     int             `json:"status"`
	Type       string          `json:"type,omitempty"`
	Location   string          `json:"location,omitempty"`
	RetryAfter string          `json:"retry_after,omitempty"`
	Body       json.RawMessage `json:"body,omitempty"`
	// Cut answers nothing: the connection is closed.
	Cut bool `json:"-"`

	styles []string // of a page: its policy allows these and no other
}

// created is a success with its address, "" for none.
func created(location string, body any) answer {
	return answer{Status: http.StatusCreated, Type: jsonType, Location: location, Body: encode(body)}
}

// encode writes JSON without escaping for HTML: the merchant's state goes back byte for byte.
func encode(v any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	if err != nil {
		return nil // the sandbox's own structs always encode
	}
	return bytes.TrimRight(buffer.Bytes(), "\n")
}

// faultTexts are the texts of the message ids that the sandbox uses (decision "error-table").
var faultTexts = map[string]string{
	"SVC0001": "A service error occurred. Error code is %1",
	"SVC0002": "Invalid input value for message part %1",
	"SVC0003": "Invalid input value for message part %1, valid values are %2",
	"SVC0004": "No valid addresses provided in message part %1",
	"SVC0005": "Correlator %1 specified in message part %2 is a duplicate",
	"SVC0270": "Charging operation failed, the charge was not applied",
	"SVC0280": "Message too long; maximum length is %1 characters",
	"POL0001": "A policy error occurred. Error code is %1",
	"POL0253": "Payment operation refused by user",
	"POL1000": "User has insufficient credit for transaction",
	"900800":  "Message throttled out",
	"900901":  "Invalid Credentials",
	"900902":  "Missing Credentials",
	"900906":  "No matching resource found",
}

type exception struct {
	MessageID string   `json:"messageId"`
	Text      string   `json:"text"`
	Variables []string `json:"variables"`
}

// refusal is a requestError: a serviceException for SVC, a policyException for POL and 9009xx.
func refusal(status int, id string, variables []string) answer {
	side := "policyException"
	if strings.HasPrefix(id, "SVC") {
		side = "serviceException"
	}
	if variables == nil {
		variables = []string{}
	}
	body := map[string]map[string]exception{"requestError": {side: {id, faultTexts[id], variables}}}
	return answer{Status: status, Type: jsonType, Body: encode(body)}
}

// finalRefusal is what an operator answers when it refuses for good.
func finalRefusal(id string) answer {
	switch id {
	case "POL0001":
		return refusal(http.StatusForbidden, id, []string{"Not enough credit"})
	case "SVC0270":
		return refusal(http.StatusBadRequest, id, nil)
	}
	return refusal(http.StatusForbidden, id, nil)
}

// inFlight says that the key is being worked on. Retry-After tells it from a duplicate, which has a Location instead.
func inFlight(key, part string) answer {
	a := duplicate(key, part, "")
	a.RetryAfter = "1"
	return a
}

// duplicate says that the key was used; location is what came of it, "" for nothing to show.
func duplicate(key, part, location string) answer {
	a := refusal(http.StatusConflict, "SVC0005", []string{key, part})
	a.Location = location
	return a
}

// word names the answer in the log of calls.
func (a answer) word() string {
	if a.Cut {
		return "cut"
	}
	return strconv.Itoa(a.Status)
}

// write sends the answer, or cuts the connection before a byte of it.
func (a answer) write(w http.ResponseWriter) {
	if a.Cut {
		cut(w)
		return
	}
	header := w.Header()
	set := func(name, value string) {
		if value != "" {
			header.Set(name, value)
		}
	}
	set("Content-Type", a.Type)
	set("Location", a.Location)
	set("Retry-After", a.RetryAfter)
	if a.Status == http.StatusUnauthorized {
		set("WWW-Authenticate", `Bearer realm="sandbox"`)
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the client may be gone: that is its affair
}

func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the server closes the connection
	}
	_ = conn.Close()
}
