package charge_test

import "testing"

// decision "circuit-breaker".
func TestOpenCircuit(t *testing.T) {
	suite.CheckOpenCircuit(t, 201, 504)
	suite.CheckProbes(t)
}
