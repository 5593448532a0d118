package operationtest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/strictjson"
)

// updateGolden is set by `go test -update`, which writes the golden files instead of comparing them.
var updateGolden = flag.Bool("update", false, "write the golden files")

// Golden compares a JSON text with a file. Only the spaces between values may differ.
func Golden(t testing.TB, path string, text []byte) {
	t.Helper()
	got := indentJSON(t, text)
	if *updateGolden {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(indentJSON(t, want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// GoldenResponse compares the status, headers and body of a response with a file.
func GoldenResponse(t testing.TB, path string, response Response) {
	t.Helper()
	Golden(t, path, strictjson.Marshal(struct {
		Status int               `json:"status"`
		Header map[string]string `json:"header"`
		Body   json.RawMessage   `json:"body"`
	}{response.Status, response.Header, json.RawMessage(response.Body)}))
}

func indentJSON(t testing.TB, text []byte) string {
	t.Helper()
	var indented bytes.Buffer
	if err := json.Indent(&indented, bytes.TrimSpace(text), "", "  "); err != nil {
		t.Fatalf("not JSON: %q", text)
	}
	return indented.String() + "\n"
}
