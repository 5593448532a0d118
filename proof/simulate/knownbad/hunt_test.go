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
	_ = runHistory(t, 0, &variants[at], "") // the first history makes what all histories share
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
	violation := runHistory(t, seed, v, v.name)
	if violation == nil {
		return
	}
	invariant := invariantOf(violation)
	switch shipped := runHistory(t, seed, v, ""); {
	case shipped != nil:
		found.Shipped = fmt.Sprintf("seed %d: %s", seed, shipped)
	case slices.Contains(v.invariants, invariant):
		found.Seed, found.Invariant, found.Violation = seed, invariant, violation.Error()
	default:
		found.Other = fmt.Sprintf("seed %d: %s", seed, violation)
	}
}

// runHistory runs one history of a variant's world in a bubble. bug is the variant's name, or "" for the code as it
// ships. A history with a violation may stop in the middle of an invocation; the bubble then panics about its tasks.
func runHistory(t *testing.T, seed uint64, v *variant, bug string) (violation error) {
	t.Helper()
	active.Use(bug)
	defer active.Use("")
	defer func() {
		if panicked := recover(); panicked != nil && violation == nil {
			panic(panicked)
		}
	}()
	synctest.Test(t, func(*testing.T) {
		violation = simulate.Run(tape.FromSeed(seed).Force(v.world),
			simulate.Options{Platforms: v.platforms}).Violation
	})
	return violation
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
