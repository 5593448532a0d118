package simulate

import (
	"slices"
	"testing"

	"mobilegateway/internal/simulate/tape"
)

// TestPlatformRegressions runs the seeds that found defects: at 210 a repeat echoed the one-time code by the rule of a
// new route. At 1579, 1666, 1898, 2276 and 810296 the model was wrong.
func TestPlatformRegressions(t *testing.T) {
	for _, seed := range []uint64{210, 1579, 1666, 1898, 2276, 810296} {
		if r := runHistory(t, tape.FromSeed(seed), Options{Platforms: true}); r.Violation != nil {
			t.Errorf("seed %d: %s", seed, r.Violation)
		}
	}
}

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
