package simulate

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"mobilegateway/proof/simulate/tape"
)

var circuitSeeds = flag.Int("circuit-seeds", 16, "histories of TestCircuitsAreReached")

// TestCircuitsAreReached runs histories with circuits: some of them open, take probes, close, and refuse orders. It
// logs the share of the histories with each of these.
func TestCircuitsAreReached(t *testing.T) {
	world := map[string]int{"has circuits": 1 << 20, "only one merchant and one operator have faults": 0}
	histories, events := map[string]int{}, map[string]int{}
	for seed := *firstSeed; seed < *firstSeed+uint64(*circuitSeeds); seed++ {
		result := runHistory(t, tape.FromSeed(seed).Force(world), Options{})
		if result.Violation != nil {
			t.Errorf("seed %d: %s", seed, result.Violation)
		}
		for kind, number := range result.Faults {
			if strings.HasPrefix(kind, "circuit: ") {
				histories[kind]++
				events[kind] += number
			}
		}
	}
	for _, kind := range []string{"opened", "probe", "closed by probes", "opened by a probe", "refused a request"} {
		if histories["circuit: "+kind] == 0 {
			t.Errorf("no history has %q", kind)
		}
	}
	var text strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(events)) {
		share := 100 * float64(histories[kind]) / float64(*circuitSeeds)
		fmt.Fprintf(&text, "%-30s %6d in %4d histories (%.0f %%)\n", kind, events[kind], histories[kind], share)
	}
	t.Logf("%d histories with circuits:\n%s", *circuitSeeds, text.String())
}
