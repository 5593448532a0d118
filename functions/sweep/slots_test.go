package sweep

import (
	"fmt"
	"io"
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

const slowCall, quickCall = 3*time.Second + 1, 3 * time.Second

func keyOf(name string) ledger.Key { return ledger.Key{Kind: ledger.Payment, ID: name} }

// requirementOf is the requirement of a call to a dependency of its own.
func requirementOf(kind dependencyKind, name string) requirement {
	return requirement{dependencies: []dependency{{kind, name}}}
}

// fill takes slots until one is not granted. It returns how many were granted, and the result for the next key.
func (t *slotTable) fill(needed func(number int) requirement) (all []slot, last grant) {
	for number := 0; ; number++ {
		taken, result := t.acquire(keyOf(fmt.Sprint("key-", number)), needed(number))
		if result != granted {
			return all, result
		}
		all = append(all, taken)
	}
}

// decision "fair-queue": a dependency has few slots before its first quick call, more after it, few after slow ones.
func TestSlotsOfDependency(t *testing.T) {
	lookups := func(int) requirement { return requirementOf(lookupOf, "sandbox") }
	ofMerchant := func(number int) requirement { // each order has another server
		return requirement{dependencies: []dependency{{serverOf, fmt.Sprint("server-", number)}, {merchantOf, "m"}}}
	}
	failing := func(int) requirement {
		return requirement{dependencies: lookups(0).dependencies, most: maxFailingServerSlots}
	}
	calls := func(count int, elapsed time.Duration) (all []time.Duration) {
		for range count {
			all = append(all, elapsed)
		}
		return all
	}
	for name, c := range map[string]struct {
		needed  func(int) requirement
		calls   []time.Duration
		granted int
		last    grant
	}{
		"an operator without a call":          {lookups, nil, 8, queued},
		"a slot that was not used":            {lookups, calls(1, noCall), 8, queued},
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
			var table slotTable
			for number, elapsed := range c.calls {
				// Servers that are not called again, so that only the merchant's slots count.
				used, _ := table.acquire(keyOf("first"), c.needed(-1-number))
				table.release(used, elapsed)
			}
			taken, last := table.fill(c.needed)
			if len(taken) != c.granted || last != c.last {
				t.Errorf("%d slots, then %d; want %d, then %d", len(taken), last, c.granted, c.last)
			}
		})
	}
}

// All dependencies together have 256 slots. Free ones go to the waiting lines in turn.
func TestSlotsAreShared(t *testing.T) {
	var table slotTable
	taken, last := table.fill(func(number int) requirement {
		return requirementOf(lookupOf, fmt.Sprint("operator-", number))
	})
	if len(taken) != 256 || last != queued {
		t.Fatalf("%d slots, then %d; want 256, then a queue", len(taken), last)
	}
	for _, waiting := range []struct{ key, operator string }{{"a-1", "a"}, {"a-2", "a"}, {"b-1", "b"}} {
		used, result := table.acquire(keyOf(waiting.key), requirementOf(userSMSOf, waiting.operator))
		if result != queued {
			t.Fatalf("%s: slot %v, %d; want it to wait", waiting.key, used, result)
		}
	}
	for i, want := range []string{"key-256", "a-1", "b-1", "a-2"} {
		next, postponed := table.release(taken[i], quickCall)
		if len(next) != 1 || next[0].key.ID != want || len(postponed) != 0 {
			t.Fatalf("slot %d goes to %+v, postponed %v; want %s", i, next, postponed, want)
		}
		if want == "a-1" && !next[0].slot.matches(requirementOf(userSMSOf, "a")) {
			t.Errorf("the slot of %s is one of another system", want)
		}
	}
	if next, postponed := table.release(taken[4], quickCall); len(next)+len(postponed) != 0 {
		t.Errorf("a slot that nothing waits for: %v, %v", next, postponed)
	}
}

// A quick call gives slots to the keys that wait. After a slow call they are postponed.
func TestWaitingLine(t *testing.T) {
	sandbox := func(int) requirement { return requirementOf(lookupOf, "sandbox") }
	for name, c := range map[string]struct {
		elapsed         time.Duration
		next, postponed int
	}{"not used": {noCall, 1, 0}, "quick": {quickCall, 25, 0}, "slow": {slowCall, 0, maxWaiting}} {
		t.Run(name, func(t *testing.T) {
			var table slotTable
			taken, _ := table.fill(sandbox) // the next key waits
			for number := range maxWaiting - 1 {
				if _, result := table.acquire(keyOf(fmt.Sprint("wait-", number)), sandbox(0)); result != queued {
					t.Fatalf("the key %d of the line: %d, want it to wait", number+2, result)
				}
			}
			if _, result := table.acquire(keyOf("one too many"), sandbox(0)); result != refused {
				t.Errorf("the key behind a full line: %d, want it refused", result)
			}
			next, postponed := table.release(taken[0], c.elapsed)
			if len(next) != c.next || len(postponed) != c.postponed {
				t.Errorf("%d continue and %d are postponed, want %d and %d",
					len(next), len(postponed), c.next, c.postponed)
			}
			for i, waiting := range next {
				if want := fmt.Sprint("wait-", i-1); i > 0 && waiting.key.ID != want {
					t.Errorf("slot %d goes to %s, want %s: the oldest first", i+1, waiting.key.ID, want)
				}
			}
		})
	}
}

// A key that has got a slot, and has nothing due any more, frees it.
func TestUnusedSlotIsFreed(t *testing.T) {
	p := &pass{Sweep: &Sweep{Book: &ledger.Book{Reader: storetest.NewLedger(t)}, Now: time.Now, Log: io.Discard}}
	used, _ := p.slots.acquire(keyOf("gone"), requirementOf(lookupOf, "sandbox"))
	p.process(t.Context(), keyOf("gone"), used)
	if p.slots.running != 0 {
		t.Errorf("%d slots are in use, want none", p.slots.running)
	}
}

// All sweeps of a minute together have the slots that one would have, but each has one at least.
func TestSlotsAreDivided(t *testing.T) {
	lookups := func(int) requirement { return requirementOf(lookupOf, "sandbox") }
	others := func(number int) requirement { return requirementOf(lookupOf, fmt.Sprint("operator-", number)) }
	for name, c := range map[string]struct {
		needed  func(int) requirement
		calls   []time.Duration
		sweeps  int
		granted int
		last    grant
	}{
		"an operator without a call, 4 sweeps": {lookups, nil, 4, 2, queued},
		"after a quick call, 4 sweeps":         {lookups, []time.Duration{quickCall}, 4, 8, queued},
		"after a slow call, 2 sweeps":          {lookups, []time.Duration{slowCall}, 2, 1, refused},
		"after a slow call, 4 sweeps":          {lookups, []time.Duration{slowCall}, 4, 1, refused},
		"all systems, 4 sweeps":                {others, nil, 4, 64, queued},
		"all systems, 16 sweeps":               {others, nil, 16, 16, queued},
	} {
		t.Run(name, func(t *testing.T) {
			table := slotTable{sweeps: c.sweeps}
			for _, elapsed := range c.calls {
				used, _ := table.acquire(keyOf("first"), c.needed(0))
				table.release(used, elapsed)
			}
			taken, last := table.fill(c.needed)
			if len(taken) != c.granted || last != c.last {
				t.Errorf("%d slots, then %d; want %d, then %d", len(taken), last, c.granted, c.last)
			}
		})
	}
}

// decision "circuit-breaker": lookups of an account whose circuit is open start with the slots of a slow platform. A
// quick call proves the platform.
func TestSlotsOfOpenCircuit(t *testing.T) {
	open := requirementOf(lookupOf, "sandbox")
	open.startsSlow = true
	needed := func(int) requirement { return open }
	slots := &slotTable{}
	all, last := slots.fill(needed)
	if len(all) != 2 || last != queued {
		t.Errorf("%d slots, then %v; want 2, and the next key waits", len(all), last)
	}
	slots.release(all[0], quickCall)
	more, _ := slots.fill(needed)
	if got := slots.usage(open.dependencies[0]).running; got != 32 {
		t.Errorf("%d slots after a quick call, %d of them new; want 32", got, len(more))
	}
}
