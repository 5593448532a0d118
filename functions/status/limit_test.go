package status_test

import (
	"testing"

	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/merchant"
)

// decision "merchant-limits": lookups are requests too.
func TestRate(t *testing.T) {
	w := shop(t)
	w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.RequestsPerSecond, p.Burst = 1, 1 })
	w.Do(t, askPayment(t)).Fails(t, 404, "SVC0002", "order_id")
	w.Do(t, askPayment(t)).Fails(t, 429, "900800")
	if line := w.LastLine(t); line["Throttled"] != 1.0 || line["Merchant"] != "DemoShop" {
		t.Errorf("line %v", line)
	}
}
