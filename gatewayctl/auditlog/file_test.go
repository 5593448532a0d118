package auditlog

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestFileCopies: the local run's file keeps each line, and is empty before the first.
func TestFileCopies(t *testing.T) {
	file := FileCopies{filepath.Join(t.TempDir(), "audit.jsonl")}
	for _, want := range [][]string{nil, {"{}"}, {"{}", `{"a":1}`}} {
		if len(want) > 0 {
			if err := file.Write(t.Context(), time.Time{}, want[len(want)-1]); err != nil {
				t.Fatal(err)
			}
		}
		documents, err := file.Documents(t.Context())
		if !slices.Equal(documents, want) || err != nil {
			t.Errorf("documents %q, %v, want %q", documents, err, want)
		}
	}
}
