package sweep

import (
	"fmt"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

const slowCall, quickCall = 3*time.Second + 1, 3 * time.Second

func keyOf(name string) ledger.Key { return ledger.Key{Kind: ledger.Payment, ID: name} }

// needOf is the need of a call to a dependency of its own.
func needOf(kind dependencyKind, name string) need {
	return need{dependencies: []dependency{{kind, name}}}
}

// fill takes places until one is not granted. It returns how many were granted, and the result for the next key.
func (p *placeTable) fill(needed func(number int) need) (all []*place, last placement) {
	for number := 0; ; number++ {
		taken, result := p.acquire(keyOf(fmt.Sprint("key-", number)), needed(number))
		if result != granted {
			return all, result
		}
		all = append(all, taken)
	}
}

// decision "fair-queue": a dependency has few places before its first quick call, more after it, few after slow ones.
func TestPlacesOfDependency(t *testing.T) {
	lookups := func(int) need { return needOf(lookupOf, "sandbox") }
	ofMerchant := func(number int) need { // each order has another server
		return need{dependencies: []dependency{{serverOf, fmt.Sprint("server-", number)}, {merchantOf, "m"}}}
	}
	failing := func(int) need { return need{dependencies: lookups(0).dependencies, most: maxFailingServerPlaces} }
	calls := func(count int, elapsed time.Duration) (all []time.Duration) {
		for range count {
			all = append(all, elapsed)
		}
		return all
	}
	for name, c := range map[string]struct {
		needed  func(int) need
		calls   []time.Duration
		granted int
		last    placement
	}{
		"an operator without a call":          {lookups, nil, 8, queued},
		"a place that was not used":           {lookups, calls(1, noCall), 8, queued},
		"after a quick call":                  {lookups, calls(1, quickCall), 32, queued},
		"after a slow call":                   {lookups, calls(1, slowCall), 2, refused},
		"after a slow and a quick call":       {lookups, []time.Duration{slowCall, quickCall}, 32, queued},
		"a server that fails":                 {failing, nil, 2, refused},
		"a server that fails, after a call":   {failing, calls(1, quickCall), 2, refused},
		"a merchant without a call":           {ofMerchant, nil, 16, queued},
		"a merchant after a quick call":       {ofMerchant, calls(1, quickCall), 64, queued},
		"a merchant after 7 slow calls":       {ofMerchant, calls(7, slowCall), 16, queued},
		"a merchant after 8 slow calls":       {ofMerchant, calls(8, slowCall), 8, refused},
		"a merchant after 8, and a quick one": {ofMerchant, append(calls(8, slowCall), quickCall), 8, refused},
	} {
		t.Run(name, func(t *testing.T) {
			var table placeTable
			for number, elapsed := range c.calls {
				// Servers that are not called again, so that only the merchant's places count.
				used, _ := table.acquire(keyOf("first"), c.needed(-1-number))
				table.release(used, elapsed)
			}
			taken, last := table.fill(c.needed)
			if len(taken) != c.granted || last != c.last {
				t.Errorf("%d places, then %d; want %d, then %d", len(taken), last, c.granted, c.last)
			}
		})
	}
}

// All dependencies together have 256 places. Free ones go to the waiting lines in turn.
func TestPlacesAreShared(t *testing.T) {
	var table placeTable
	taken, last := table.fill(func(number int) need { return needOf(lookupOf, fmt.Sprint("operator-", number)) })
	if len(taken) != 256 || last != queued {
		t.Fatalf("%d places, then %d; want 256, then a queue", len(taken), last)
	}
	for _, waiting := range []struct{ key, operator string }{{"a-1", "a"}, {"a-2", "a"}, {"b-1", "b"}} {
		if used, result := table.acquire(keyOf(waiting.key), needOf(userSMSOf, waiting.operator)); result != queued {
			t.Fatalf("%s: place %v, %d; want it to wait", waiting.key, used, result)
		}
	}
	for i, want := range []string{"key-256", "a-1", "b-1", "a-2"} {
		next, postponed := table.release(taken[i], quickCall)
		if len(next) != 1 || next[0].key.ID != want || len(postponed) != 0 {
			t.Fatalf("place %d goes to %+v, postponed %v; want %s", i, next, postponed, want)
		}
		if want == "a-1" && !next[0].place.matches(needOf(userSMSOf, "a")) {
			t.Errorf("the place of %s is one of another system", want)
		}
	}
	if next, postponed := table.release(taken[4], quickCall); len(next)+len(postponed) != 0 {
		t.Errorf("a place that nothing waits for: %v, %v", next, postponed)
	}
}

// A quick call gives places to the keys that wait. After a slow call they are postponed.
func TestWaitingLine(t *testing.T) {
	sandbox := func(int) need { return needOf(lookupOf, "sandbox") }
	for name, c := range map[string]struct {
		elapsed         time.Duration
		next, postponed int
	}{"not used": {noCall, 1, 0}, "quick": {quickCall, 25, 0}, "slow": {slowCall, 0, 1000}} {
		t.Run(name, func(t *testing.T) {
			var table placeTable
			taken, _ := table.fill(sandbox) // the next key waits
			for number := range 999 {
				if _, result := table.acquire(keyOf(fmt.Sprint("wait-", number)), sandbox(0)); result != queued {
					t.Fatalf("the key %d of the line: %d, want it to wait", number+2, result)
				}
			}
			if _, result := table.acquire(keyOf("one too many"), sandbox(0)); result != refused {
				t.Errorf("the key 1001 of the line: %d, want it refused", result)
			}
			next, postponed := table.release(taken[0], c.elapsed)
			if len(next) != c.next || len(postponed) != c.postponed {
				t.Errorf("%d continue and %d are postponed, want %d and %d",
					len(next), len(postponed), c.next, c.postponed)
			}
			for i, waiting := range next {
				if want := fmt.Sprint("wait-", i-1); i > 0 && waiting.key.ID != want {
					t.Errorf("place %d goes to %s, want %s: the oldest first", i+1, waiting.key.ID, want)
				}
			}
		})
	}
}
