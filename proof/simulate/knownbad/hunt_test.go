//go:build knownbad

package knownbad

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/simulate"
	"mobilegateway/proof/simulate/knownbad/active"
	"mobilegateway/proof/simulate/tape"
)

var (
	huntVariant = flag.String("variant", "", "variant that TestHunt looks for")
	huntKnown   = flag.Uint64("known", 0, "seed that TestHunt tries first; 0 for none")
	huntResult  = flag.String("result", "", "file for the result of TestHunt")
)

// TestHunt runs histories with one variant until one of its invariants is violated. TestKnownBad starts it, in a
// program that was built with the overlay.
func TestHunt(t *testing.T) {
	at := slices.IndexFunc(variants, func(v variant) bool { return v.name == *huntVariant })
	if at < 0 {
		t.Fatalf("there is no variant %q: set -variant", *huntVariant)
	}
	_ = runHistory(t, tape.FromSeed(0), &variants[at], "", simulate.Options{}) // makes what all share
	found, started := finding{}, time.Now()
	if *huntKnown != 0 {
		try(t, &variants[at], *huntKnown, &found)
	}
	for seed := uint64(1); seed <= uint64(*seedCount) && found.Seed == 0; seed++ {
		try(t, &variants[at], seed, &found)
	}
	found.Seconds = time.Since(started).Seconds()
	encoded, err := json.Marshal(found)
	if err == nil {
		err = os.WriteFile(*huntResult, encoded, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// try runs one history with a variant. A violation counts only if the code as it ships passes the seed.
func try(t *testing.T, v *variant, seed uint64, found *finding) {
	t.Helper()
	found.Histories++
	result := runHistory(t, tape.FromSeed(seed), v, v.name, simulate.Options{})
	violation := result.Violation
	if violation == nil {
		return
	}
	invariant := invariantOf(violation)
	switch shipped := runHistory(t, tape.FromSeed(seed), v, "", simulate.Options{}).Violation; {
	case shipped != nil:
		found.Shipped = fmt.Sprintf("seed %d: %s", seed, shipped)
	case slices.Contains(v.invariants, invariant):
		found.Seed, found.Invariant, found.Violation = seed, invariant, violation.Error()
		reduce(t, v, result, found)
	default:
		found.Other = fmt.Sprintf("seed %d: %s", seed, violation)
	}
}

// reduce keeps the story of the simplest history that the variant violates in the same way. It does not simplify
// the longest histories, which take minutes.
func reduce(t *testing.T, v *variant, result simulate.Result, found *finding) {
	t.Helper()
	const longHistory = 10_000 // steps
	maxRuns := 300
	if result.Counts.Steps > longHistory {
		maxRuns = 0
	}
	reduced := simulate.Reduce(found.Seed, result, simulate.Options{}, maxRuns,
		func(choices *tape.Tape, options simulate.Options) simulate.Result {
			return runHistory(t, choices, v, v.name, options)
		})
	found.Story, found.AllLines = reduced.Related, len(reduced.Story)
}

// runHistory runs one history of a variant's world in a bubble. bug is the variant's name, or "" for the code as it
// ships. A history with a violation may stop in the middle of an invocation; the bubble then panics about its tasks.
func runHistory(
	t *testing.T, choices *tape.Tape, v *variant, bug string, options simulate.Options,
) (result simulate.Result) {
	t.Helper()
	active.Use(bug)
	defer active.Use("")
	defer func() {
		if panicked := recover(); panicked != nil && result.Violation == nil {
			panic(panicked)
		}
	}()
	options.Platforms = v.platforms
	synctest.Test(t, func(*testing.T) { result = simulate.Run(choices.Force(v.world), options) })
	return result
}

var invariantNumber = regexp.MustCompile(`^invariant (\d+):`)

// invariantOf returns the number of a violated invariant, 0 for a history that did not end.
func invariantOf(violation error) int {
	match := invariantNumber.FindStringSubmatch(violation.Error())
	if match == nil {
		return 0
	}
	number, _ := strconv.Atoi(match[1]) // digits, by the pattern
	return number
}
