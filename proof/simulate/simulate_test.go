package simulate

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"testing/synctest"

	"mobilegateway/proof/simulate/tape"
)

// ballast is never touched. The collector counts it as used, so that it collects garbage only after 400 MB.
var ballast = make([]byte, 16<<20)

// TestMain collects garbage seldom: histories are short, and leave nothing behind. It uses one processor: tasks that
// wake up at once, as those that waited for one fetch of a secret, then run one after the other. Their order is
// the same in each run, unless the runtime preempts one of them, as it may on a machine under load.
func TestMain(m *testing.M) {
	processors = runtime.GOMAXPROCS(1)
	debug.SetGCPercent(2000)
	code := m.Run()
	runtime.KeepAlive(ballast)
	os.Exit(code)
}

// runHistory runs one history in a bubble.
func runHistory(t *testing.T, choices *tape.Tape, options Options) (result Result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { result = Run(choices, options) })
	return result
}

// logStory logs the story of a history: with a violation only the lines about it, unless -all is set.
func logStory(t *testing.T, result Result) {
	t.Helper()
	story := result.Story
	if result.Violation != nil && !*wholeStory {
		story = result.Related
		t.Logf("%d of %d lines; -all shows all", len(story), len(result.Story))
	}
	for _, line := range story {
		t.Log(line)
	}
	if result.Violation != nil {
		t.Error(result.Violation)
	}
}

// TestWithout runs a history without one of its orders, which then sends nothing.
func TestWithout(t *testing.T) {
	all := runHistory(t, tape.FromSeed(3), Options{})
	fewer := runHistory(t, tape.FromSeed(3), Options{Without: []int{0}})
	none := runHistory(t, tape.FromSeed(3), Options{Without: []int{0, 1}})
	if all.Orders != 2 || fewer.Counts.Requests == 0 || fewer.Counts.Requests >= all.Counts.Requests ||
		none.Counts.Requests != 0 {
		t.Errorf("%d orders; %d requests, then %d and %d without orders", all.Orders, all.Counts.Requests,
			fewer.Counts.Requests, none.Counts.Requests)
	}
}

// TestHasWord compares names in the lines of a story: a longer name is another one.
func TestHasWord(t *testing.T) {
	for text, want := range map[string]bool{
		"stored pay#OpenShop_1 v2": true, "of OpenShop_1: failed": true, "the end of OpenShop_1": true,
		"OpenShop_12 and OpenShop_1": true, "stored pay#OpenShop_12 v2": false, "OpenShop_1r": false,
	} {
		if got := hasWord(text, "OpenShop_1"); got != want {
			t.Errorf("%q has the name: %v, want %v", text, got, want)
		}
	}
}

// TestSameSeedSameHistory runs seeds twice: their stories are equal byte for byte. Each third is one of the platforms.
func TestSameSeedSameHistory(t *testing.T) {
	for seed := uint64(1); seed <= 39; seed++ {
		options := Options{Story: true, Platforms: seed%3 == 0}
		first := runHistory(t, tape.FromSeed(seed), options)
		second := runHistory(t, tape.FromSeed(seed), options)
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
