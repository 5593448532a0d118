package status_test

import (
	"testing"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/merchant"
)

// decision "merchant-limits": lookups are requests too.
func TestRate(t *testing.T) {
	w := newFixture(t)
	w.Merchants.UpdateProfile(operationtest.DemoToken, func(p *merchant.Profile) {
		p.RequestsPerSecond, p.Burst = 1, 1
	})
	w.Send(t, paymentEvent(t)).AssertError(t, 404, "SVC0002", "order_id")
	w.Send(t, paymentEvent(t)).AssertError(t, 429, "900800")
	w.AssertCounted(t, "RateLimitedRequests")
	if name := w.LastLine(t)["Merchant"]; name != "DemoShop" {
		t.Errorf("merchant %v in the log line, want DemoShop", name)
	}
}
