package operationtest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Response is a response to API Gateway.
type Response struct {
	Status int               `json:"statusCode"`
	Header map[string]string `json:"headers"`
	Body   string            `json:"body"`
}

// Exception is the error in a response.
type Exception struct {
	Family    string // serviceException or policyException
	MessageID string
	Text      string
	Variables []string
}

// Exception reads the error shape of the API strictly. It returns false for any other body (decision "error-shape").
func (r Response) Exception() (Exception, bool) {
	var wire struct {
		RequestError map[string]struct {
			MessageID string    `json:"messageId"`
			Text      string    `json:"text"`
			Variables *[]string `json:"variables"`
		} `json:"requestError"`
	}
	decoder := json.NewDecoder(strings.NewReader(r.Body))
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

// AssertError checks that the response is an error with a status, a messageId and its variables.
func (r Response) AssertError(t testing.TB, status int, id string, variables ...string) {
	t.Helper()
	found, ok := r.Exception()
	if !ok {
		t.Fatalf("not an error of the API: %d %s", r.Status, r.Body)
	}
	family := "policyException"
	if strings.HasPrefix(id, "SVC") {
		family = "serviceException"
	}
	same := r.Status == status && found.MessageID == id && found.Family == family
	if !same || !slices.Equal(found.Variables, variables) {
		t.Fatalf("got %d %s, want %d %s %s %q", r.Status, r.Body, status, family, id, variables)
	}
	r.AssertHeader(t, "Content-Type", "application/json")
}

// AssertUnknown checks that the response reports an unknown outcome: 504 with Retry-After.
func (r Response) AssertUnknown(t testing.TB) {
	t.Helper()
	r.AssertError(t, 504, "SVC0001", "PDK_SMSW_0011")
	if r.Header["Retry-After"] == "" {
		t.Error("504 without Retry-After")
	}
}

// AssertUnknownAt checks for a 504 that names the transaction by the end of its URL.
func (r Response) AssertUnknownAt(t testing.TB, path string) {
	t.Helper()
	r.AssertUnknown(t)
	if at := r.Header["Location"]; !strings.HasPrefix(at, "https://") || !strings.HasSuffix(at, path) {
		t.Errorf("decision charge-unknown: 504 with the Location %q, want one that ends in %s", at, path)
	}
}

// AssertServerError checks that the status is 500 or above.
func (r Response) AssertServerError(t testing.TB) {
	t.Helper()
	if r.Status < 500 {
		t.Errorf("got %d %s, want 500 or above", r.Status, r.Body)
	}
}

// AssertHeader compares a header; "" is for an absent one.
func (r Response) AssertHeader(t testing.TB, name, want string) {
	t.Helper()
	AssertEqual(t, name, r.Header[name], want)
}

// AssertText compares a string of the JSON body; "" is also for an absent one.
func (r Response) AssertText(t testing.TB, path, want string) {
	t.Helper()
	if got := r.Text(path); got != want {
		t.Errorf("%s is %q, want %q, in %s", path, got, want, r.Body)
	}
}

// AssertStatus checks the status and returns the response.
func (r Response) AssertStatus(t testing.TB, status int) Response {
	t.Helper()
	if r.Status != status {
		t.Fatalf("got %d %s, want %d", r.Status, r.Body, status)
	}
	return r
}

// AssertRepeatOf checks that the response replays another, byte for byte (decision "charge-repeat").
func (r Response) AssertRepeatOf(t testing.TB, first Response) {
	t.Helper()
	if r.Status != first.Status || r.Body != first.Body || r.Header["Location"] != first.Header["Location"] {
		t.Fatalf("got %d %s, want %d %s", r.Status, r.Body, first.Status, first.Body)
	}
	r.AssertHeader(t, "Idempotent-Replayed", "true")
	first.AssertHeader(t, "Idempotent-Replayed", "")
}

// RawJSON returns a part of the JSON body as it was sent, "" for none.
func (r Response) RawJSON(path string) string {
	point := json.RawMessage(r.Body)
	for key := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(point, &object); err != nil {
			return ""
		}
		point = object[key]
	}
	return string(point)
}

// Text returns a string of the JSON body, "" for none.
func (r Response) Text(path string) string {
	var text string
	if err := json.Unmarshal([]byte(r.RawJSON(path)), &text); err != nil {
		return ""
	}
	return text
}
