package simulate

import (
	"slices"
	"testing"

	"mobilegateway/proof/simulate/tape"
)

// TestSamePlatformSeedSameHistory runs seeds twice: their stories are equal.
func TestSamePlatformSeedSameHistory(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		first := runHistory(t, tape.FromSeed(seed), Options{Story: true, Platforms: true})
		second := runHistory(t, tape.FromSeed(seed), Options{Story: true, Platforms: true})
		if !slices.Equal(first.Story, second.Story) {
			t.Errorf("seed %d gives two stories", seed)
		}
	}
}
