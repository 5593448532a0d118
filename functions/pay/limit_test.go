package pay_test

import (
	"testing"
	"time"

	"mobilegateway/internal/limitmem"
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

// decision "released": what may have been sent before stays bound to its body, also where the limit refuses its repeat.
func TestOverLimitAfterARelease(t *testing.T) {
	w := shop(t)
	w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"XOF": 2000} })
	order := func() *operationtest.Event { return ussd(t).Set("order_id", "DemoShop_2002").Set("amount", "600") }
	w.Driver.Script(operationtest.Down)
	w.Do(t, order()).Fails(t, 503, "SVC0001", "PDK_SMSW_0013")
	w.Clock.Advance(time.Second)
	w.Do(t, web(t)).Succeeds(t, 201)
	w.Do(t, order()).Fails(t, 403, "POL0001", "Daily amount limit exceeded", "500", "XOF")
	w.Do(t, order().Set("amount", "400")).Fails(t, 409, "SVC0005", "DemoShop_2002", "order_id")
	w.Clock.Advance(24 * time.Hour)
	w.Do(t, order()).Succeeds(t, 201)
}

// decision "merchant-limits": one that was never sent binds no body, however often it is refused.
func TestOverLimitBindsNothing(t *testing.T) {
	w := shop(t)
	w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"XOF": 300} })
	for _, amount := range []string{"600", "500", "400"} {
		w.Do(t, ussd(t).Set("amount", amount)).Fails(t, 403, "POL0001", "Daily amount limit exceeded", "300", "XOF")
		w.Clock.Advance(time.Second)
	}
	w.Do(t, ussd(t).Set("amount", "300")).Succeeds(t, 201)
}

// A success that is claimed while the amount is counted is no refusal: it may have been applied (decision "outcomes").
func TestClaimedWhileCounting(t *testing.T) {
	w := shop(t)
	w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"XOF": 2000} })
	order := func() *operationtest.Event { return ussd(t).Set("order_id", "DemoShop_2002").Set("amount", "600") }
	w.Driver.Script(operationtest.Down)
	w.Do(t, order()).Fails(t, 503, "SVC0001", "PDK_SMSW_0013")
	w.Do(t, web(t)).Succeeds(t, 201)
	w.Limits.SetFaults(func() limitmem.Fault {
		for _, e := range w.Ledger.All() {
			if e.ID == "DemoShop_2002" {
				e.NoteClaim(ledger.Claim{Status: ledger.Successful, Due: w.Clock.Now()}, w.Clock.Now())
				e.Version++
				w.Ledger.Put(e)
			}
		}
		return limitmem.None
	})
	w.Do(t, order()).Fails(t, 504, "SVC0001", "PDK_SMSW_0011")
}
