package operationtest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"mobilegateway/shared/strictjson"
)

// updateGolden is set by `go test -update`, which writes the golden files instead of comparing them.
var updateGolden = flag.Bool("update", false, "write the golden files")

// Golden compares a JSON text with a file, which has it indented. Only the spaces between values may differ.
func Golden(t testing.TB, path string, got []byte) {
	t.Helper()
	if *updateGolden {
		writeGolden(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if compactJSON(t, got) != compactJSON(t, want) {
		t.Errorf("%s:\n got %s\nwant %s", path, compactJSON(t, got), compactJSON(t, want))
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

func writeGolden(t testing.TB, path string, text []byte) {
	t.Helper()
	var indented bytes.Buffer
	if err := json.Indent(&indented, bytes.TrimSpace(text), "", "  "); err != nil {
		t.Fatal(err)
	}
	indented.WriteByte('\n')
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, indented.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func compactJSON(t testing.TB, text []byte) string {
	t.Helper()
	var compacted bytes.Buffer
	if err := json.Compact(&compacted, text); err != nil {
		t.Fatalf("not JSON: %q", text)
	}
	return compacted.String()
}
