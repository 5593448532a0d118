package operationtest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Response is what API Gateway is given.
type Response struct {
	Status int               `json:"statusCode"`
	Header map[string]string `json:"headers"`
	Body   string            `json:"body"`
}

// Exception is the error in an answer.
type Exception struct {
	Family    string // serviceException or policyException
	MessageID string
	Text      string
	Variables []string
}

// Exception reads the error shape of the API, strictly; false where the body is not of it (decision "error-shape").
func (a Response) Exception() (Exception, bool) {
	var wire struct {
		RequestError map[string]struct {
			MessageID string    `json:"messageId"`
			Text      string    `json:"text"`
			Variables *[]string `json:"variables"`
		} `json:"requestError"`
	}
	decoder := json.NewDecoder(strings.NewReader(a.Body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wire); err != nil || len(wire.RequestError) != 1 {
		return Exception{}, false
	}
	for family, found := range wire.RequestError {
		if found.Variables != nil && found.MessageID != "" && found.Text != "" {
			return Exception{family, found.MessageID, found.Text, *found.Variables}, true
		}
	}
	return Exception{}, false
}

// AssertError checks that the answer is an error with a status, a messageId and its variables.
func (a Response) AssertError(t testing.TB, status int, id string, variables ...string) {
	t.Helper()
	found, ok := a.Exception()
	if !ok {
		t.Fatalf("not an error of the API: %d %s", a.Status, a.Body)
	}
	family := "policyException"
	if strings.HasPrefix(id, "SVC") {
		family = "serviceException"
	}
	if a.Status != status || found.MessageID != id || found.Family != family || !slices.Equal(found.Variables, variables) {
		t.Fatalf("got %d %s, want %d %s %s %q", a.Status, a.Body, status, family, id, variables)
	}
	if a.Header["Content-Type"] != "application/json" {
		t.Errorf("Content-Type %q", a.Header["Content-Type"])
	}
}

// AssertStatus checks the status.
func (a Response) AssertStatus(t testing.TB, status int) Response {
	t.Helper()
	if a.Status != status {
		t.Fatalf("got %d %s, want %d", a.Status, a.Body, status)
	}
	return a
}

// AssertRepeatOf checks that the answer repeats another, byte for byte (decision "charge-repeat").
func (a Response) AssertRepeatOf(t testing.TB, first Response) {
	t.Helper()
	if a.Status != first.Status || a.Body != first.Body || a.Header["Location"] != first.Header["Location"] {
		t.Fatalf("got %d %s, want %d %s", a.Status, a.Body, first.Status, first.Body)
	}
	if a.Header["Idempotent-Replayed"] != "true" || first.Header["Idempotent-Replayed"] != "" {
		t.Fatalf("Idempotent-Replayed %q after %q", a.Header["Idempotent-Replayed"], first.Header["Idempotent-Replayed"])
	}
}

// RawJSON is a part of the JSON body as it is written, "" where there is none.
func (a Response) RawJSON(path string) string {
	point := json.RawMessage(a.Body)
	for key := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(point, &object); err != nil {
			return ""
		}
		point = object[key]
	}
	return string(point)
}

// Text is a string of the JSON body, "" where there is none.
func (a Response) Text(path string) string {
	var text string
	if err := json.Unmarshal([]byte(a.RawJSON(path)), &text); err != nil {
		return ""
	}
	return text
}
