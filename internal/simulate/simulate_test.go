package simulate

import (
	"flag"
	"os"
	"runtime/debug"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/internal/simulate/tape"
)

var (
	seedCount  = flag.Int("seeds", 100, "number of histories of TestSeeds")
	firstSeed  = flag.Uint64("first", 1, "first seed of TestSeeds")
	oneSeed    = flag.Uint64("seed", 0, "run one seed with its story")
	storyCount = flag.Int("shown", 1, "number of failing seeds that TestSeeds shrinks and shows")
)

// maxShrinkRuns bounds the histories that are run to shrink a failing one.
const maxShrinkRuns = 300

// TestMain collects garbage seldom: histories are short, and leave nothing behind.
func TestMain(m *testing.M) {
	debug.SetGCPercent(2000)
	os.Exit(m.Run())
}

// runHistory runs one history in a bubble.
func runHistory(t *testing.T, choices *tape.Tape, options Options) (result Result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { result = Run(choices, options) })
	return result
}

// TestSeeds runs many histories of drawn faults. The table of docs/reliability.md is its output.
func TestSeeds(t *testing.T) {
	if *oneSeed != 0 {
		result := runHistory(t, tape.FromSeed(*oneSeed), Options{Story: true})
		logStory(t, result)
		return
	}
	started := time.Now()
	var report Report
	for seed := *firstSeed; seed < *firstSeed+uint64(*seedCount); seed++ {
		result := runHistory(t, tape.FromSeed(seed), Options{})
		report.Add(result)
		if result.Violation == nil {
			continue
		}
		t.Errorf("seed %d: %s", seed, result.Violation)
		if report.Violations <= *storyCount {
			showShrunk(t, result)
		}
		t.Logf("run it again: go test ./internal/simulate -run TestSeeds -seed %d -v", seed)
	}
	elapsed := time.Since(started)
	t.Logf("%d histories in %s: %.0f a second\n%s", *seedCount, elapsed.Round(time.Millisecond),
		float64(*seedCount)/elapsed.Seconds(), &report)
}

// showShrunk looks for the simplest history with the same kind of violation, and logs its story.
func showShrunk(t *testing.T, failed Result) {
	t.Helper()
	const kind = len("invariant 1:") // the violation's number
	prefix := failed.Violation.Error()[:min(kind, len(failed.Violation.Error()))]
	runs := 0
	shortest := tape.Shrink(failed.Choices, maxShrinkRuns, func(choices []int) bool {
		runs++
		result := runHistory(t, tape.FromChoices(choices), Options{})
		return result.Violation != nil && result.Violation.Error()[:min(kind, len(result.Violation.Error()))] == prefix
	})
	before, after := nonZero(failed.Choices), nonZero(shortest)
	t.Logf("shrunk from %d to %d choices that are not zero, in %d runs:", before, after, runs)
	logStory(t, runHistory(t, tape.FromChoices(shortest), Options{Story: true}))
}

func nonZero(choices []int) int {
	return len(slices.DeleteFunc(slices.Clone(choices), func(choice int) bool { return choice == 0 }))
}

// logStory logs the story of a history.
func logStory(t *testing.T, result Result) {
	t.Helper()
	for _, line := range result.Story {
		t.Log(line)
	}
	if result.Violation != nil {
		t.Error(result.Violation)
	}
}

// TestSameSeedSameHistory runs seeds twice: their stories are equal byte for byte.
func TestSameSeedSameHistory(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		first := runHistory(t, tape.FromSeed(seed), Options{Story: true})
		second := runHistory(t, tape.FromSeed(seed), Options{Story: true})
		if !slices.Equal(first.Story, second.Story) {
			for i, line := range first.Story {
				if i >= len(second.Story) || line != second.Story[i] {
					other := second.Story[min(i, len(second.Story)-1)]
					t.Fatalf("seed %d: line %d is %q, then %q", seed, i, line, other)
				}
			}
			t.Fatalf("seed %d: the second story is longer", seed)
		}
	}
}
