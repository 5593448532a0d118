package pay_test

import (
	"testing"

	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// decision "merchant-limits": payments count as charges do, and are counted before the operator is called.
func TestDailyAmount(t *testing.T) {
	w := shop(t)
	w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"XOF": 2000} })
	spent := func(want int64) {
		t.Helper()
		if got := w.Limits.Sum("demo0001", "XOF"); got != want {
			t.Errorf("counted %d, want %d", got, want)
		}
	}
	first := w.Do(t, web(t)).Succeeds(t, 201)
	spent(1500)
	w.Do(t, web(t)).Replays(t, first)
	next := func() *operationtest.Event { return ussd(t).Set("order_id", "DemoShop_2002").Set("amount", "600") }
	w.Do(t, next()).Fails(t, 403, "POL0001", "Daily amount limit exceeded", "500", "XOF")
	if calls := len(w.Driver.Calls()); calls != 1 {
		t.Errorf("%d calls", calls)
	}
	w.Driver.Script(operationtest.Refuse("POL1000"))
	w.Do(t, next().Set("amount", "500")).Fails(t, 403, "POL1000")
	spent(1500)
	w.Do(t, ussd(t).Set("order_id", "DemoShop_2003").Set("amount", "500")).Succeeds(t, 201)
	spent(2000)
	for _, e := range w.Ledger.All() {
		if e.Kind == ledger.Payment && !e.Limited {
			t.Errorf("%s does not say that it counts", e.ID)
		}
	}
}
