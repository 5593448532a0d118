package stubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
)

// Stub is the stub of an operator in a test, with the receiver of its callbacks.
type Stub struct {
	Caller
	Callbacks *Callbacks
	name      string
}

// NewStub makes a stub whose callbacks the client sends. quirks are the names of those that are on, with spaces between
// them. name is the operator's name in the effects.
func NewStub(t *testing.T, name, quirks string, newHandler func(client *http.Client) http.Handler) *Stub {
	t.Helper()
	callbacks := &Callbacks{}
	s := &Stub{To(t, newHandler(Client(callbacks))), callbacks, name}
	switches := map[string]bool{}
	for quirk := range strings.FieldsSeq(quirks) {
		switches[quirk] = true
	}
	s.control("PUT", "/stub/v1/quirks", switches)
	return s
}

func (s *Stub) control(method, path string, body any) {
	s.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	if status, response := s.Do(method, path, string(text)); status != http.StatusOK {
		s.Fatal(response)
	}
}

// Script fixes what the next calls of an operation do. key is "" for calls with any key.
func (s *Stub) Script(operation, key string, modes ...string) {
	s.Helper()
	s.control("POST", "/stub/v1/script", map[string]any{"operation": operation, "key": key, "calls": modes})
}

// Effects counts the effects under a key, "" for all.
func (s *Stub) Effects(key string) int {
	s.Helper()
	_, text := s.Do("GET", "/stub/v1/effects?key="+url.QueryEscape(key), "")
	return strings.Count(text, `"operator":"`+s.name+`"`)
}

// Words returns a field of each callback, in their order.
func (s *Stub) Words(path string) string {
	s.Helper()
	var words []string
	for _, callback := range s.Callbacks.All() {
		words = append(words, Field(s.T, callback.Body, path))
	}
	return strings.Join(words, " ")
}

// Field returns a field of a JSON object by its path, with dots between the levels: "" for an absent one.
func Field(t *testing.T, body, path string) string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	for name := range strings.SplitSeq(path, ".") {
		object, _ := value.(map[string]any)
		field, isPresent := object[name]
		if !isPresent {
			return ""
		}
		value = field
	}
	return fmt.Sprint(value)
}

// Parse reads a JSON text.
func Parse[V any](t *testing.T, text string) (v V) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// Zeros is a random source for golden forms.
type Zeros struct{}

// Read implements io.Reader.
func (Zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Run runs a named test in a synctest bubble.
func Run(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}
