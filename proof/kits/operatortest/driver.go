package operatortest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
