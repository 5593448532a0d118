package operatortest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/secret"
)

// ReadFile returns a file of the driver's testdata, without space at its ends.
func ReadFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// Text writes a request as the files of the documents' examples have it, with those of the headers that it has.
func (r Request) Text(headers ...string) string {
	text := r.Method + " " + r.Path + "\n"
	for _, name := range headers {
		if value := r.Header.Get(name); value != "" {
			text += name + ": " + value + "\n"
		}
	}
	return strings.TrimSpace(text + "\n" + r.Body)
}

// CheckRequests compares the requests of a stub with the files of the documents' examples. headers are those that the
// platform reads.
func CheckRequests(t *testing.T, stub *StubOperator, headers []string, names ...string) {
	t.Helper()
	if sent := len(stub.Requests()); sent != len(names) {
		t.Fatalf("%d requests, want %d", sent, len(names))
	}
	for i, r := range stub.Requests() {
		if diff := cmp.Diff(ReadFile(t, "document/"+names[i]), r.Text(headers...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", names[i], diff)
		}
	}
}

// CheckResult checks an outcome and its fault, which has no private text. kind counts unless the outcome is Succeeded.
func CheckResult(
	t testing.TB, got operator.Result, outcome operator.Outcome, kind fault.Kind, private []string,
) {
	t.Helper()
	if got.Outcome != outcome || (got.Fault == nil) != (outcome == operator.Succeeded) {
		t.Fatalf("outcome %d, want %d: %v", got.Outcome, outcome, got.Fault)
	}
	if got.Fault == nil {
		return
	}
	if got.Fault.Kind != kind {
		t.Fatalf("fault %v, want the kind %v", got.Fault, kind)
	}
	CheckPrivate(t, got.Fault, private)
}

// CheckPrivate checks that an error, which may be nil, contains no private text.
func CheckPrivate(t testing.TB, err error, private []string) {
	t.Helper()
	isIn := func(text string) bool { return err != nil && strings.Contains(err.Error(), text) }
	if i := slices.IndexFunc(private, isIn); i >= 0 {
		t.Errorf("%q is in the text %q", private[i], err)
	}
}

// Secret is a secret with one account of a platform, the current one.
func Secret(platform, id string, fields any) secret.Static {
	raw, err := json.Marshal(map[string]any{
		platform: map[string]any{"current": id, "accounts": map[string]any{id: fields}},
	})
	if err != nil {
		panic(err) // fields of texts and objects always have a form
	}
	return raw
}

// RenewedSecret is a secret that has another value after a refresh. One without a value cannot be read.
type RenewedSecret struct{ Value, Renewed []byte }

// Get implements secret.Reader.
func (s *RenewedSecret) Get(context.Context) ([]byte, error) {
	if s.Value == nil {
		return nil, errors.New("the secret cannot be read")
	}
	return s.Value, nil
}

// Refresh implements secret.Reader.
func (s *RenewedSecret) Refresh(ctx context.Context) ([]byte, error) {
	s.Value = s.Renewed
	return s.Get(ctx)
}

// FetchedAt implements secret.Reader: the value is never old.
func (s *RenewedSecret) FetchedAt() time.Time { return time.Time{} }
