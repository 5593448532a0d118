package knownbad

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"mobilegateway/proof/simulate"
	"mobilegateway/proof/simulate/tape"
)

// TestForcedChoicesAreDrawn fails for a forced choice that has no effect. Either no history of its world draws the
// label, because simulate has renamed it, or the choice has fewer alternatives.
func TestForcedChoicesAreDrawn(t *testing.T) {
	for _, v := range variants {
		for _, label := range undrawnLabels(t, v.world, v.platforms) {
			t.Errorf("%s: no history draws the forced choice %q as %d", v.name, label, v.world[label])
		}
	}
}

// undrawnLabels returns the labels of a world that none of its first histories draws with the forced alternative.
func undrawnLabels(t *testing.T, world choices, platforms bool) []string {
	t.Helper()
	const maxHistories = 30
	undrawn := maps.Clone(world)
	for seed := uint64(1); seed <= maxHistories && len(undrawn) > 0; seed++ {
		drawn := tape.FromSeed(seed).Force(world)
		synctest.Test(t, func(*testing.T) { simulate.Run(drawn, simulate.Options{Platforms: platforms}) })
		for _, choice := range drawn.Choices() {
			if forced := world[choice.Label]; forced == last || forced < choice.Count {
				delete(undrawn, choice.Label)
			}
		}
	}
	return slices.Sorted(maps.Keys(undrawn))
}
