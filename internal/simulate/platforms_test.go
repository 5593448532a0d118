package simulate

import (
	"slices"
	"testing"

	"mobilegateway/internal/simulate/tape"
)

// TestPlatformSeeds runs histories of payments by real operators' platforms, as many as -seeds, from -first.
func TestPlatformSeeds(t *testing.T) {
	if *isWorker {
		t.Skip("the workers serve TestSeeds")
	}
	if *oneSeed != 0 {
		logStory(t, runHistory(t, tape.FromSeed(*oneSeed), Options{Story: true, Plan: planPlatforms}))
		return
	}
	var report Report
	for seed := *firstSeed; seed < *firstSeed+uint64(max(*seedCount, 0)) && report.Violations < *maxFailures; seed++ {
		result := runHistory(t, tape.FromSeed(seed), Options{Plan: planPlatforms})
		report.Add(result)
		if result.Violation != nil {
			t.Errorf("seed %d: %s", seed, result.Violation)
		}
	}
	t.Log(&report)
}

// TestSamePlatformSeedSameHistory runs seeds twice: their stories are equal.
func TestSamePlatformSeedSameHistory(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		first := runHistory(t, tape.FromSeed(seed), Options{Story: true, Plan: planPlatforms})
		second := runHistory(t, tape.FromSeed(seed), Options{Story: true, Plan: planPlatforms})
		if !slices.Equal(first.Story, second.Story) {
			t.Errorf("seed %d gives two stories", seed)
		}
	}
}
