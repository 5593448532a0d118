package operation_test

import (
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/circuit"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operation"
)

// decision "circuit-breaker": a released key is sent to the account that it is pinned to, also after its route has
// moved. So the circuit of that account decides, and an open one stores nothing.
func TestReleasedKeyOfAMovedRoute(t *testing.T) {
	momo, moved := routedChoice("mtn-momo/ci"), routedChoice("pawapay/ci")
	unroutable := momo
	unroutable.Refusal = errNoRoute
	key := circuit.Key{Account: "mtn-momo/ci", Operation: string(ledger.Payment)}
	for name, c := range map[string]struct {
		open     func(t *testing.T, circuits *operationtest.Circuits)
		probes   int // taken before
		reserved bool
		swaps    int
	}{
		"closed": {open: func(*testing.T, *operationtest.Circuits) {}, reserved: true},
		"open": {open: func(t *testing.T, circuits *operationtest.Circuits) {
			circuits.OpenFor(t, key, time.Hour)
		}},
		"half open": {open: func(t *testing.T, circuits *operationtest.Circuits) {
			circuits.OpenFor(t, key, 0)
		}, reserved: true, swaps: 1},
		"half open, no place": {open: func(t *testing.T, circuits *operationtest.Circuits) {
			circuits.OpenFor(t, key, 0)
		}, probes: 3},
	} {
		for choiceName, choice := range map[string]operation.Choice{"moved": moved, "refused today": unroutable} {
			w := operationtest.New(t)
			mustReservePayment(t, w, momo, ledger.CallOutcome{State: ledger.Released})
			circuits := w.UseCircuits()
			c.open(t, circuits)
			for range c.probes {
				if _, taken := w.Pipeline.Circuits.TakeProbe(key); !taken {
					t.Fatal("no probe")
				}
			}
			version, swaps := w.Ledger.All()[0].Version, circuits.Store.CallCount(storetest.SwapCircuit)
			a, reserved, err := reservePayment(w, "f", choice, nil)
			isRefused := err != nil && fault.FromError(err).Reason == fault.ReasonCircuitOpen
			if reserved != c.reserved || isRefused == c.reserved {
				t.Errorf("%s, %s: reserved %v, error %v; want %v", name, choiceName, reserved, err, c.reserved)
			}
			if !c.reserved && w.Ledger.All()[0].Version != version {
				t.Errorf("%s, %s: a refusal is stored", name, choiceName)
			}
			if got := circuits.Store.CallCount(storetest.SwapCircuit) - swaps; got != c.swaps {
				t.Errorf("%s, %s: %d writes of the circuit, want %d", name, choiceName, got, c.swaps)
			}
			if c.reserved && a.Stored.Route.Account != "mtn-momo/ci" {
				t.Errorf("%s, %s: reserved for %s", name, choiceName, a.Stored.Route.Account)
			}
		}
	}
}
