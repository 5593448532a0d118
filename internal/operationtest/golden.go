package operationtest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// update is set by `go test -update`: golden files are written instead of compared.
var update = flag.Bool("update", false, "write the golden files")

// Golden compares a JSON text with a file, which holds it indented. Every byte of a value counts, spaces between do not.
func Golden(t testing.TB, path string, got []byte) {
	t.Helper()
	if *update {
		write(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if compact(t, got) != compact(t, want) {
		t.Errorf("%s:\n got %s\nwant %s", path, compact(t, got), compact(t, want))
	}
}

// GoldenAnswer compares an answer with a file: its status, headers and body.
func GoldenAnswer(t testing.TB, path string, answer Answer) {
	t.Helper()
	document := struct {
		Status int               `json:"status"`
		Header map[string]string `json:"header"`
		Body   json.RawMessage   `json:"body"`
	}{answer.Status, answer.Header, json.RawMessage(answer.Body)}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		t.Fatal(err)
	}
	Golden(t, path, text.Bytes())
}

func write(t testing.TB, path string, text []byte) {
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

func compact(t testing.TB, text []byte) string {
	t.Helper()
	var compacted bytes.Buffer
	if err := json.Compact(&compacted, text); err != nil {
		t.Fatalf("not JSON: %q", text)
	}
	return compacted.String()
}
