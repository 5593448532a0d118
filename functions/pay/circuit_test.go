package pay_test

import "testing"

// decision "circuit-breaker": only a terminal has a response while the outcome is unknown.
func TestOpenCircuit(t *testing.T) {
	for channel, unknown := range map[string]int{"web": 504, "tpe": 201, "ussd": 201} {
		t.Run(channel, func(t *testing.T) {
			s := newSuite(channel)
			s.CheckOpenCircuit(t, 201, unknown)
			s.CheckProbes(t)
		})
	}
}
