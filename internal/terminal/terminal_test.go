package terminal_test

import (
	"os"
	"path/filepath"
	"testing"

	"mobilegateway/internal/terminal"
)

// A file and a pipe are no terminals.
func TestColumns(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*os.File{"file": file, "pipe": writer, "reader": reader} {
		if got := terminal.Columns(f); got != 0 {
			t.Errorf("%s has %d columns", name, got)
		}
		_ = f.Close()
	}
}
