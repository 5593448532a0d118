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
	w := newFixture(t)
	w.Merchants.UpdateProfile(operationtest.DemoToken, func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"XOF": 2000} })
	spent := func(want int64) {
		t.Helper()
		if got := w.LimitStore.Sum("demo0001", "XOF"); got != want {
			t.Errorf("counted %d, want %d", got, want)
		}
	}
	first := w.Send(t, webEvent(t)).AssertStatus(t, 201)
	spent(1500)
	w.Send(t, webEvent(t)).AssertRepeatOf(t, first)
	next := func() *operationtest.Event {
		return ussdEvent(t).SetBodyPart("order_id", "DemoShop_2002").SetBodyPart("amount", "600")
	}
	w.Send(t, next()).AssertError(t, 403, "POL0001", "Daily amount limit exceeded", "500", "XOF")
	if calls := len(w.Driver.Calls()); calls != 1 {
		t.Errorf("%d calls", calls)
	}
	w.Driver.SetBehaviours(operationtest.RefuseFinally("POL1000"))
	w.Send(t, next().SetBodyPart("amount", "500")).AssertError(t, 403, "POL1000")
	spent(1500)
	w.Send(t, ussdEvent(t).SetBodyPart("order_id", "DemoShop_2003").SetBodyPart("amount", "500")).AssertStatus(t, 201)
	spent(2000)
	for _, e := range w.Ledger.All() {
		if e.Kind == ledger.Payment && !e.CountsDailyAmount {
			t.Errorf("%s does not say that it counts", e.ID)
		}
	}
}

// decision "released": what may have been sent before stays bound to its body, also where the limit refuses its repeat.
func TestOverLimitAfterRelease(t *testing.T) {
	w := newFixture(t)
	w.Merchants.UpdateProfile(operationtest.DemoToken, func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"XOF": 2000} })
	order := func() *operationtest.Event {
		return ussdEvent(t).SetBodyPart("order_id", "DemoShop_2002").SetBodyPart("amount", "600")
	}
	w.Driver.SetBehaviours(operationtest.RespondUnavailable)
	w.Send(t, order()).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
	w.Clock.Advance(time.Second)
	w.Send(t, webEvent(t)).AssertStatus(t, 201)
	w.Send(t, order()).AssertError(t, 403, "POL0001", "Daily amount limit exceeded", "500", "XOF")
	w.Send(t, order().SetBodyPart("amount", "400")).AssertError(t, 409, "SVC0005", "DemoShop_2002", "order_id")
	w.Clock.Advance(24 * time.Hour)
	w.Send(t, order()).AssertStatus(t, 201)
}

// decision "merchant-limits": one that was never sent binds no body, however often it is refused.
func TestOverLimitDoesNotBindBody(t *testing.T) {
	w := newFixture(t)
	w.Merchants.UpdateProfile(operationtest.DemoToken, func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"XOF": 300} })
	for _, amount := range []string{"600", "500", "400"} {
		w.Send(t, ussdEvent(t).SetBodyPart("amount", amount)).AssertError(t, 403, "POL0001", "Daily amount limit exceeded", "300", "XOF")
		w.Clock.Advance(time.Second)
	}
	w.Send(t, ussdEvent(t).SetBodyPart("amount", "300")).AssertStatus(t, 201)
}

// A success that is claimed while the amount is counted is no refusal: it may have been applied (decision "outcomes").
func TestSuccessClaimedWhileReservingAmount(t *testing.T) {
	w := newFixture(t)
	w.Merchants.UpdateProfile(operationtest.DemoToken, func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"XOF": 2000} })
	order := func() *operationtest.Event {
		return ussdEvent(t).SetBodyPart("order_id", "DemoShop_2002").SetBodyPart("amount", "600")
	}
	w.Driver.SetBehaviours(operationtest.RespondUnavailable)
	w.Send(t, order()).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
	w.Send(t, webEvent(t)).AssertStatus(t, 201)
	w.LimitStore.SetFaults(func() limitmem.Fault {
		for _, e := range w.Ledger.All() {
			if e.ID == "DemoShop_2002" {
				e.AddClaim(ledger.Claim{Status: ledger.Successful, CheckAt: w.Clock.Now()}, w.Clock.Now())
				e.Version++
				w.Ledger.Overwrite(e)
			}
		}
		return limitmem.None
	})
	w.Send(t, order()).AssertError(t, 504, "SVC0001", "PDK_SMSW_0011")
}
