package deployment

import (
	"path/filepath"
	"slices"
	"testing"

	"mobilegateway/world/template"
)

// notSimulated are the functions that no history calls. report only reads.
var notSimulated = []string{"report"}

// TestLikeTemplate compares the timeouts of the functions and the limits of the stream with template.yaml.
func TestLikeTemplate(t *testing.T) {
	deployed, err := template.Load(filepath.FromSlash("../../../template.yaml"), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(constructors) + len(notSimulated); len(deployed.Functions) != want {
		t.Errorf("%d functions are deployed, want %d", len(deployed.Functions), want)
	}
	for _, f := range deployed.Functions {
		if slices.Contains(notSimulated, f.Name) {
			continue
		}
		if got := Timeout(f.Name); constructors[f.Name] == nil || got != f.Timeout {
			t.Errorf("%s has the timeout %s here, and %s in the template", f.Name, got, f.Timeout)
		}
		for _, s := range f.Streams {
			if s.BatchSize != maxBatch || s.MaxRecordAge != maxRecordAge || s.MaxRetryAttempts+1 != maxBatchTries {
				t.Errorf("the stream of %s has other limits than the simulated one: %+v", f.Name, s)
			}
		}
	}
}
