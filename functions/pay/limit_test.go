package pay_test

import (
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// decision "merchant-limits": payments count as charges do, and are counted before the operator is called.
func TestDailyAmount(t *testing.T) {
	w := newFixture(t)
	w.SetDailyLimit(2000)
	first := w.Send(t, webEvent(t)).AssertStatus(t, 201)
	w.AssertDailySum(t, 1500)
	w.Send(t, webEvent(t)).AssertRepeatOf(t, first)
	w.Send(t, secondOrder(t)).AssertError(t, 403, "POL0001", "Daily amount limit exceeded", "500", "XOF")
	w.AssertOperatorCalls(t, 1)
	w.Driver.SetBehaviours(operationtest.RefuseFinally("POL1000"))
	w.Send(t, secondOrder(t).SetBodyPart("amount", "500")).AssertError(t, 403, "POL1000")
	w.AssertDailySum(t, 1500)
	w.Send(t, ussdEvent(t).SetBodyPart("order_id", "DemoShop_2003").SetBodyPart("amount", "500")).AssertStatus(t, 201)
	w.AssertDailySum(t, 2000)
	for _, e := range w.Ledger.All() {
		if e.Kind == ledger.Payment && !e.Amount.CountsDaily {
			t.Errorf("%s is not marked as counted", e.ID)
		}
	}
}

// decision "released": a payment that may have been sent stays bound to its body, also if the limit refuses its retry.
func TestOverLimitAfterRelease(t *testing.T) {
	w := newFixture(t)
	w.SetDailyLimit(2000)
	w.Driver.SetBehaviours(operationtest.RespondUnavailable)
	w.Send(t, secondOrder(t)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
	w.Clock.Advance(time.Second)
	w.Send(t, webEvent(t)).AssertStatus(t, 201)
	w.Send(t, secondOrder(t)).AssertError(t, 403, "POL0001", "Daily amount limit exceeded", "500", "XOF")
	w.Send(t, secondOrder(t).SetBodyPart("amount", "400")).AssertError(t, 409, "SVC0005", "DemoShop_2002", "order_id")
	w.Clock.Advance(24 * time.Hour)
	w.Send(t, secondOrder(t)).AssertStatus(t, 201)
}

// decision "merchant-limits": a payment that was never sent binds no body, however often it is refused.
func TestOverLimitDoesNotBindBody(t *testing.T) {
	w := newFixture(t)
	w.SetDailyLimit(300)
	for _, amount := range []string{"600", "500", "400"} {
		response := w.Send(t, ussdEvent(t).SetBodyPart("amount", amount))
		response.AssertError(t, 403, "POL0001", "Daily amount limit exceeded", "300", "XOF")
		w.Clock.Advance(time.Second)
	}
	w.Send(t, ussdEvent(t).SetBodyPart("amount", "300")).AssertStatus(t, 201)
}

// A success that is claimed while the amount is counted prevents a refusal: it may be applied (decision "outcomes").
func TestSuccessClaimedWhileReservingAmount(t *testing.T) {
	w := newFixture(t)
	w.SetDailyLimit(2000)
	w.Driver.SetBehaviours(operationtest.RespondUnavailable)
	w.Send(t, secondOrder(t)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
	w.Send(t, webEvent(t)).AssertStatus(t, 201)
	w.LimitStore.InjectFaults(func(storetest.Call) storetest.Fault {
		for _, e := range w.Ledger.All() {
			if e.ID == "DemoShop_2002" {
				e.AddClaim(ledger.Claim{Status: ledger.Successful, CheckAt: w.Clock.Now()}, w.Clock.Now())
				e.Version++
				w.Ledger.Overwrite(e)
			}
		}
		return storetest.NoFault
	})
	w.Send(t, secondOrder(t)).AssertUnknown(t)
}

// secondOrder is another payment, of 600 XOF.
func secondOrder(t testing.TB) *operationtest.Event {
	t.Helper()
	return ussdEvent(t).SetBodyPart("order_id", "DemoShop_2002").SetBodyPart("amount", "600")
}
