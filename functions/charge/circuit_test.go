package charge_test

import (
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/circuit"
)

// decision "circuit-breaker".
func TestOpenCircuit(t *testing.T) {
	suite.CheckOpenCircuit(t, 201, 504)
	suite.CheckProbes(t)
}

// decision "circuit-breaker": the account has changed since the first request. A retry would go to the account that the
// charge is pinned to, so the circuit of that one counts.
func TestOpenCircuitOfEarlierAccount(t *testing.T) {
	for name, c := range map[string]struct {
		open  time.Duration // of the circuit of the earlier account; 0 for closed
		want  int
		calls int
	}{"open": {time.Hour, 504, 1}, "closed": {0, 201, 2}} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			circuits := w.UseCircuits()
			w.WithBehaviours(operationtest.LoseResponse).Send(t, newEvent(t)).AssertUnknown(t)
			w.Driver.Account = "a2"
			if c.open > 0 {
				circuits.OpenFor(t, circuit.Key{Account: "sandbox/a1", Operation: "charge"}, c.open)
			}
			w.Send(t, newEvent(t)).AssertStatus(t, c.want)
			w.AssertOperatorCalls(t, c.calls)
			w.Send(t, chargeNumber(t, "new")).AssertStatus(t, 201)
		})
	}
}
