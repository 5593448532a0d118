package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// exception is a story that a target cannot tell, because the target is not AWS. Nothing else is left out anywhere.
type exception struct {
	target string // as E2E_TARGET names it
	story  string // file below stories/
	why    string
}

// exceptions is the whole table.
var exceptions = []exception{
	{"localstack", "routes.txtar", "GatewayResponses are ignored: LocalStack answers unknown routes with 403 in its own shape"},
	{"sam", "routes.txtar", "there are no GatewayResponses: SAM answers unknown routes with 403 in its own shape"},
}

// patience is by how much a target's waits are longer than the local run's, and why.
var patience = map[string]time.Duration{
	// One batch of a stream's shard at a time, whatever ParallelizationFactor says: a notification may wait behind a slow one.
	"localstack": 4,
}

// targetName is what the stories play against: "" for the local run.
func targetName() string { return os.Getenv("E2E_TARGET") }

// patiently is how long to wait for what takes so long on the local run.
func patiently(wait time.Duration) time.Duration { return wait * max(patience[targetName()], 1) }

// storyFiles are the stories that the target can tell.
func storyFiles(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("stories", "*.txtar"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	told := slices.Clone(all)
	for _, row := range exceptions {
		path := filepath.Join("stories", row.story)
		if !slices.Contains(all, path) {
			t.Errorf("the table of exceptions names %s, which is no story", path)
		}
		if row.target == targetName() {
			t.Logf("left out: %s: %s", row.story, row.why)
			told = slices.DeleteFunc(told, func(name string) bool { return name == path })
		}
	}
	return told
}
