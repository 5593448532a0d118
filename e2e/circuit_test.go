package e2e

import (
	"net/http"
	"testing"
	"time"

	"mobilegateway/proof/kits/localtest"
)

// Charges whose connections the operator cuts open its circuit in a run with stubs, and never in one without them
// (decision "circuit-breaker").
func TestCircuitOfLocalRun(t *testing.T) {
	if testing.Short() {
		t.Skip("starts two gateways")
	}
	const cutAlias = "circuit-alias-1005"
	for name, stubs := range map[string]bool{"with stubs": true, "without stubs": false} {
		t.Run(name, func(t *testing.T) {
			e := newCtlSession(t, localtest.Options{Stubs: stubs})
			send := func(alias string) observation {
				response, err := e.target.send(newCharge(e.target.MerchantCredentials, e.target.newID(), alias))
				if err != nil {
					t.Fatal(err)
				}
				return response
			}
			isRefused, sent := false, 0
			end := time.Now().Add(time.Minute)
			for ; !isRefused && time.Now().Before(end) && (stubs || sent < 30); sent++ {
				response := send(cutAlias)
				isRefused = response.status == http.StatusServiceUnavailable
				if isRefused && response.header.Get("X-Error-Reason") != "circuit-open" {
					t.Errorf("503 with the header %v, want circuit-open", response.header)
				}
			}
			if isRefused != stubs {
				t.Errorf("after %d charges that were cut: refused %v, want %v", sent, isRefused, stubs)
			}
			if !stubs && send(e.target.GWAlias).status != http.StatusCreated {
				t.Error("a charge is not 201 after the others were cut")
			}
		})
	}
}
