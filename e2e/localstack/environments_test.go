//go:build linux

package main

import "testing"

// TestFunctionFolder checks the folders of deployed names.
func TestFunctionFolder(t *testing.T) {
	for deployed, want := range map[string]string{
		"gateway-ChargeFunction-34ec53e9": "charge", "gateway-SweepFunction-0": "sweep", "other": "other",
	} {
		if got := functionFolder(deployed); got != want {
			t.Errorf("%s: %s, want %s", deployed, got, want)
		}
	}
}
