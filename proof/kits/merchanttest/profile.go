// Package merchanttest makes merchant profiles for tests. Only tests use it.
package merchanttest

import (
	"io"
	"math/rand"
	"testing"
	"time"

	"mobilegateway/shared/merchant"
)

// SeededReader returns reproducible random bytes.
func SeededReader(seed int64) io.Reader {
	return rand.New(rand.NewSource(seed))
}

// NewProfile makes a profile that is entitled to all operations in Ivory Coast and Senegal with the sandbox.
func NewProfile(t testing.TB, name string, seed int64) *merchant.Profile {
	t.Helper()
	created := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p, err := merchant.New(name, SeededReader(seed), created)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	p.Operations = []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS}
	p.Countries, p.Operators = []string{"CI", "SN"}, []string{"sandbox"}
	p.OnBehalfOf = []string{"Shop"}
	return p
}
