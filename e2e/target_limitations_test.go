package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// targetLimitation is a feature of AWS that a target lacks. A story checks it by name: [!name] stop ends the story
// before the first line that needs the feature. No other part of a story is skipped.
type targetLimitation struct {
	target string // as E2E_TARGET names it
	name   string
	reason string
}

// targetLimitations lists the missing features of all targets.
var targetLimitations = []targetLimitation{
	{"localstack", "gateway-responses",
		"LocalStack takes the status of GatewayResponses from the template, but not their bodies"},
	{"sam", "gateway-responses", "SAM ignores GatewayResponses: its response to an unknown route has its own form"},
	{"sam", "bursts", "SAM runs one event at a time per function, which is too slow to exceed a merchant's rate limit"},
}

// notificationTimeout is how long a test waits for a notification. It exceeds ledger.FastLease, after which the sweep
// delivers what the relay did not. TestNotificationLatency checks the speed.
const notificationTimeout = 150 * time.Second

// waitFactors multiplies the waits of the stories on a target.
var waitFactors = map[string]time.Duration{
	// The local run: a wait must exceed ledger.FastLease too.
	"": 4,
	// LocalStack reads one batch of a stream shard at a time, so a notification may wait behind a slow one.
	"localstack": 4,
	// SAM runs one event at a time per function, in an emulated container.
	"sam": 4,
	// A deployed stack has schedules of minutes; the local run has seconds (SPEED).
	"stack": 30,
}

// targetName returns the target's name, "" for the local run.
func targetName() string { return os.Getenv("E2E_TARGET") }

// scaledWait returns a story's wait, scaled for the target.
func scaledWait(wait time.Duration) time.Duration { return wait * max(waitFactors[targetName()], 1) }

// targetCapability reports whether the target has a feature, and whether the table knows the feature.
func targetCapability(name string) (can, known bool) {
	can = true
	for _, row := range targetLimitations {
		known = known || row.name == name
		can = can && (row.name != name || row.target != targetName())
	}
	return can, known
}

// TestTargetLimitationsAreUsed checks that a story uses each limitation of the table.
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
		if !strings.Contains(all.String(), "[!"+row.name+"] stop") || !slices.Contains([]string{"localstack", "sam"},
			row.target) {
			t.Errorf("no story checks whether %s has %s: remove the row", row.target, row.name)
		}
	}
}
