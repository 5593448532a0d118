package sms_test

import "testing"

// decision "circuit-breaker".
func TestOpenCircuit(t *testing.T) {
	suite.CheckOpenCircuit(t, 409, 504)
	suite.CheckProbes(t)
}
