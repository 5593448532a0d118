package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// targetLimitation is something that a target cannot do, because the target is not AWS. A story asks for it by the name: where
// it is missing, [!name] stop ends a story before the first line that needs it. Nothing else is left out anywhere.
type targetLimitation struct {
	target string // as E2E_TARGET names it
	name   string
	reason string
}

// targetLimitations is the whole table.
var targetLimitations = []targetLimitation{
	{"localstack", "gateway-responses", "LocalStack takes the status of GatewayResponses from the template, but not their bodies"},
	{"sam", "gateway-responses", "SAM knows no GatewayResponses: it answers unknown routes in its own shape"},
	{"sam", "rushes", "SAM gives a function one container, which takes one event at a time: too few a second for a merchant to exceed his limit"},
}

// notificationTimeout is how long a test waits for a notification: longer than ledger.FastLease, after which the sweep delivers what
// the fast path could not. How fast that is, TestNotificationLatency says.
const notificationTimeout = 75 * time.Second

// waitFactors is by how much a target's waits are longer than what the stories say, and why.
var waitFactors = map[string]time.Duration{
	// The local run: a wait of a story outlasts ledger.FastLease too.
	"": 4,
	// One batch of a stream's shard at a time, whatever ParallelizationFactor says: a notification may wait behind a slow one.
	"localstack": 4,
	// One event at a time, in one container a function, which another processor's emulator runs.
	"sam": 4,
	// Schedules of minutes, where the stories' own run has seconds (SPEED).
	"stack": 30,
}

// targetName is what the stories play against: "" for the local run.
func targetName() string { return os.Getenv("E2E_TARGET") }

// scaledWait is how long the target's stories wait for what is to come within that time.
func scaledWait(wait time.Duration) time.Duration { return wait * max(waitFactors[targetName()], 1) }

// targetCapability answers a condition that the table knows: whether the target can do that.
func targetCapability(name string) (can, known bool) {
	can = true
	for _, row := range targetLimitations {
		known = known || row.name == name
		can = can && (row.name != name || row.target != targetName())
	}
	return can, known
}

// TestTargetLimitationsAreUsed: what no story asks for has no place in the table.
func TestTargetLimitationsAreUsed(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("stories", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, row := range targetLimitations {
		if !strings.Contains(all.String(), "[!"+row.name+"] stop") || !slices.Contains([]string{"localstack", "sam"}, row.target) {
			t.Errorf("no story asks whether %s has %s", row.target, row.name)
		}
	}
}
