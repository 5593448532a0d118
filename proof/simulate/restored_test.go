package simulate

import (
	"flag"
	"slices"
	"testing"

	"mobilegateway/proof/simulate/tape"
)

var restoreSeeds = flag.Int("restore-seeds", 200, "histories of TestLostRetries")

// lossSeeds are histories of TestLostRetries that find a LoseRetry without one of its parts. The first one finds a
// prepared payment that stays as it is, the other one a ReservedAt that stays.
var lossSeeds = []uint64{374, 6066}

// TestLostRetries runs histories of the operators' platforms in which restores of the ledger lose the last attempts of
// payments without an outcome. Restore check then writes these, beside requests, callbacks and lookups. All invariants
// hold, and everything ends.
func TestLostRetries(t *testing.T) {
	lost := 0
	seeds := slices.Clone(lossSeeds)
	for seed := *firstSeed; seed < *firstSeed+uint64(*restoreSeeds); seed++ {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		result := runHistory(t, tape.FromSeed(seed), Options{LostRetries: true, Platforms: true})
		if result.Violation != nil {
			t.Errorf("seed %d: %s", seed, result.Violation)
		}
		lost += result.Faults["lost retry"]
	}
	if lost == 0 {
		t.Error("no history lost an attempt")
	}
	t.Logf("%d attempts were lost", lost)
}
