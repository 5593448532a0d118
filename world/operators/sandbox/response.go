package sandbox

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/strictjson"
)

const (
	jsonType = "application/json"
	htmlType = "text/html; charset=utf-8"
)

// response is an HTTP response, sent or kept for repeats.
type response struct {
	Status      int             `json:"status"`
	ContentType string          `json:"type,omitempty"`
	Location    string          `json:"location,omitempty"`
	RetryAfter  string          `json:"retry_after,omitempty"`
	Body        json.RawMessage `json:"body,omitempty"`
	// CloseConnection closes the connection instead.
	CloseConnection bool `json:"-"`

	styles []string // the only styles that a page's policy allows
}

func jsonResponse(status int, v any) response {
	return response{Status: status, ContentType: jsonType, Body: strictjson.Marshal(v)}
}

// createdResponse is a success with the address of the result, which may be "".
func createdResponse(location string, body any) response {
	created := jsonResponse(http.StatusCreated, body)
	created.Location = location
	return created
}

type exception struct {
	MessageID string   `json:"messageId"`
	Text      string   `json:"text"`
	Variables []string `json:"variables"`
}

// errorResponse is a requestError with a message and its status of the gateway's table (decision "error-table").
func errorResponse(id string, variables ...string) response {
	messages := oneapi.Messages()
	message := messages[slices.IndexFunc(messages, func(m oneapi.Message) bool { return m.ID == id })]
	body := exception{id, message.Text, append([]string{}, variables...)}
	requestError := map[oneapi.Exception]exception{message.Exception: body}
	return jsonResponse(message.Status, map[string]any{"requestError": requestError})
}

func invalidPartResponse(status int, part string) response {
	refusal := errorResponse("SVC0002", part)
	refusal.Status = status
	return refusal
}

// finalRefusal is the operator's permanent refusal with a message id.
func finalRefusal(id string) response {
	if id == "POL0001" {
		return errorResponse(id, "Not enough credit")
	}
	return errorResponse(id)
}

// inFlightResponse is the conflict with a call in progress. It has a Retry-After, and a duplicate has a Location
// instead.
func inFlightResponse(key, part string) response {
	conflict := duplicateResponse(key, part, "")
	conflict.RetryAfter = "1"
	return conflict
}

// duplicateResponse is the conflict with an earlier call under the key. location is its result's address, or "".
func duplicateResponse(key, part, location string) response {
	conflict := errorResponse("SVC0005", key, part)
	conflict.Location = location
	return conflict
}

// logText is the response in the log of calls: its status, or "cut".
func (a response) logText() string {
	if a.CloseConnection {
		return "cut"
	}
	return strconv.Itoa(a.Status)
}

// write sends the response, or closes the connection before its first byte.
func (a response) write(w http.ResponseWriter) {
	if a.CloseConnection {
		closeConnection(w)
		return
	}
	header := map[string]string{
		"Content-Type": a.ContentType, "Location": a.Location, "Retry-After": a.RetryAfter,
	}
	if a.Status == http.StatusUnauthorized {
		header["WWW-Authenticate"] = `Bearer realm="sandbox"`
	}
	for name, value := range header {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // an error means that the client is gone
}

func closeConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the server closes the connection
	}
	_ = conn.Close()
}
