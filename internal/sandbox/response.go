package sandbox

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

const jsonType = "application/json"

// response is what the operator answers, or would have answered.
type response struct {
	Status      int             `json:"status"`
	ContentType string          `json:"type,omitempty"`
	Location    string          `json:"location,omitempty"`
	RetryAfter  string          `json:"retry_after,omitempty"`
	Body        json.RawMessage `json:"body,omitempty"`
	// CloseConnection answers nothing: the connection is closed.
	CloseConnection bool `json:"-"`

	styles []string // of a page: its policy allows these and no other
}

// createdResponse is a success with its address, "" for none.
func createdResponse(location string, body any) response {
	return response{Status: http.StatusCreated, ContentType: jsonType, Location: location, Body: encode(body)}
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

// errorResponse is a requestError: a serviceException for SVC, a policyException for POL and 9009xx.
func errorResponse(status int, id string, variables []string) response {
	side := "policyException"
	if strings.HasPrefix(id, "SVC") {
		side = "serviceException"
	}
	if variables == nil {
		variables = []string{}
	}
	body := map[string]map[string]exception{"requestError": {side: {id, faultTexts[id], variables}}}
	return response{Status: status, ContentType: jsonType, Body: encode(body)}
}

// finalRefusal is what an operator answers when it refuses for good.
func finalRefusal(id string) response {
	switch id {
	case "POL0001":
		return errorResponse(http.StatusForbidden, id, []string{"Not enough credit"})
	case "SVC0270":
		return errorResponse(http.StatusBadRequest, id, nil)
	}
	return errorResponse(http.StatusForbidden, id, nil)
}

// inFlightResponse says that the key is being worked on. Retry-After tells it from a duplicate, which has a Location instead.
func inFlightResponse(key, part string) response {
	a := duplicateResponse(key, part, "")
	a.RetryAfter = "1"
	return a
}

// duplicateResponse says that the key was used; location is what came of it, "" for nothing to show.
func duplicateResponse(key, part, location string) response {
	a := errorResponse(http.StatusConflict, "SVC0005", []string{key, part})
	a.Location = location
	return a
}

// logText names the answer in the log of calls.
func (a response) logText() string {
	if a.CloseConnection {
		return "cut"
	}
	return strconv.Itoa(a.Status)
}

// write sends the answer, or cuts the connection before a byte of it.
func (a response) write(w http.ResponseWriter) {
	if a.CloseConnection {
		closeConnection(w)
		return
	}
	header := w.Header()
	set := func(name, value string) {
		if value != "" {
			header.Set(name, value)
		}
	}
	set("Content-Type", a.ContentType)
	set("Location", a.Location)
	set("Retry-After", a.RetryAfter)
	if a.Status == http.StatusUnauthorized {
		set("WWW-Authenticate", `Bearer realm="sandbox"`)
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the client may be gone: that is its affair
}

func closeConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the server closes the connection
	}
	_ = conn.Close()
}
