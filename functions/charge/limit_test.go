package charge_test

import (
	"fmt"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/merchant"
)

// newFixtureWithDailyLimit is the fixture with a daily amount of DemoShop.
func newFixtureWithDailyLimit(t testing.TB, minor int64) *operationtest.Fixture {
	t.Helper()
	w := newFixture(t)
	w.SetDailyLimit(minor)
	return w
}

// newEventNumbered is another charge of 500 XOF.
func newEventNumbered(t testing.TB, number int) *operationtest.Event {
	t.Helper()
	return newEvent(t).SetBodyPart(correlator, fmt.Sprint("c-", number)).
		SetBodyPart(reference, fmt.Sprint("REF-", number))
}

// decision "merchant-limits": the refusal reports the remaining amount, repeats are never refused, and a refused key
// may be used again.
func TestDailyAmount(t *testing.T) {
	w := newFixtureWithDailyLimit(t, 1200)
	first := w.Send(t, newEvent(t)).AssertStatus(t, 201)
	w.Send(t, newEventNumbered(t, 2)).AssertStatus(t, 201)
	w.Send(t, newEventNumbered(t, 3)).AssertError(t, 403, "POL0001", "Daily amount limit exceeded", "200", "XOF")
	w.AssertCounted(t, "DailyLimitRefusals")
	if id := w.LastLine(t)["ErrorID"]; id != "POL0001" {
		t.Errorf("ErrorID %v, want POL0001", id)
	}
	w.Send(t, newEvent(t)).AssertRepeatOf(t, first)
	w.Send(t, otherBodyEvent(t)).AssertRepeatOf(t, first)
	w.AssertDailySum(t, 1000)
	w.Send(t, newEventNumbered(t, 3).SetBodyPart(amount, "200")).AssertStatus(t, 201)
	w.Send(t, newEventNumbered(t, 4)).AssertError(t, 403, "POL0001", "Daily amount limit exceeded", "0", "XOF")
	w.AssertDailySum(t, 1200)
	w.Send(t, newEventNumbered(t, 5).SetHeader("Authorization", operationtest.OtherToken)).AssertStatus(t, 201)
	w.Clock.Advance(24 * time.Hour)
	w.Send(t, newEventNumbered(t, 4)).AssertStatus(t, 201)
	if len(w.Driver.Effects()) != 5 {
		t.Errorf("effects %v, want 5", w.Driver.Effects())
	}
}

// A charge costs nothing if its currency has no limit, or its merchant.
func TestNoDailyLimit(t *testing.T) {
	w := newFixtureWithDailyLimit(t, 1)
	w.Send(t, newEvent(t).SetHeader("X-Operator-MCO", "OCM").SetBodyPart(currency, "XAF")).AssertStatus(t, 201)
	w.Send(t, newEvent(t).SetHeader("Authorization", operationtest.OtherToken)).AssertStatus(t, 201)
	if w.LimitStore.WriteCount() != 0 {
		t.Error("the table of limits was written")
	}
}

// In DR Congo an amount counts units; the limit is in dollars (decisions "charge-odc-unit" and "merchant-limits").
func TestDailyAmountInUnits(t *testing.T) {
	w := newFixture(t).UpdateDemo(func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"USD": 2000} })
	congo := func(number int, units string) *operationtest.Event {
		return newEventNumbered(t, number).SetHeader("X-Operator-MCO", "ODC").
			SetBodyPart(currency, "USD").SetBodyPart(amount, units)
	}
	w.Send(t, congo(1, "750")).AssertStatus(t, 201)
	w.Send(t, congo(2, "1500")).AssertError(t, 403, "POL0001", "Daily amount limit exceeded", "12.50", "USD")
}

// The amount of a charge that was certainly not applied is refunded. An unknown one stays counted, and is sent again
// even if nothing remains.
func TestDailyAmountRefunded(t *testing.T) {
	cases := []struct {
		name    string
		behave  operationtest.Behaviour
		status  int
		counted int64
	}{
		{"refused", operationtest.RefuseFinally("POL1000"), 403, 0},
		{"down", operationtest.RespondUnavailable, 503, 0},
		{"rejected", operationtest.RejectRequest("SVC0002", "x"), 400, 0},
		{"the response is lost", operationtest.LoseResponse, 504, 500},
		{"the request is lost", operationtest.LoseRequest, 504, 500},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newFixtureWithDailyLimit(t, 600).WithBehaviours(c.behave)
			w.Send(t, newEvent(t)).AssertStatus(t, c.status)
			w.AssertDailySum(t, c.counted)
			if c.status == 503 || c.status == 504 {
				w.Send(t, newEvent(t)).AssertStatus(t, 201)
				w.AssertDailySum(t, 500)
			}
		})
	}
	t.Run("an unknown charge is sent again although the limit was lowered", func(t *testing.T) {
		w := newFixtureWithDailyLimit(t, 600).WithBehaviours(operationtest.LoseResponse)
		w.Send(t, newEvent(t)).AssertUnknown(t)
		w.SetDailyLimit(1)
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
		w.AssertSingleEffect(t, expectedEffect, 2)
		w.AssertDailySum(t, 500)
	})
	t.Run("a charge that was reserved without a limit is not counted later", func(t *testing.T) {
		w := suite.LoseFirst(t)
		w.SetDailyLimit(1)
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
		w.AssertDailySum(t, 0)
	})
}

// Nothing is sent while the table of limits does not respond: 503, and the same request may be retried.
func TestLimitStoreFailure(t *testing.T) {
	for name, injectedFault := range map[string]storetest.Fault{
		"the count was not applied": storetest.FailedBeforeApply, "the response was lost": storetest.LostResponse,
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixtureWithDailyLimit(t, 600)
			w.LimitStore.InjectFaults(func(storetest.Call) storetest.Fault { return injectedFault })
			response := w.Send(t, newEvent(t))
			response.AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
			if response.Header["Retry-After"] == "" {
				t.Error("503 without Retry-After")
			}
			w.AssertOperatorCalls(t, 0)
			if w.LastLine(t)["LimitStoreFailures"] == nil {
				t.Errorf("the failure is not counted: %v", w.LastLine(t))
			}
			w.LimitStore.InjectFaults(nil)
			w.Send(t, newEvent(t)).AssertStatus(t, 201)
			w.AssertDailySum(t, 500)
			w.AssertSingleEffect(t, expectedEffect, 1)
		})
	}
	t.Run("after an unknown it stays unknown", func(t *testing.T) {
		w := newFixtureWithDailyLimit(t, 600).WithBehaviours(operationtest.LoseResponse)
		w.Send(t, newEvent(t)).AssertUnknown(t)
		w.LimitStore.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
		w.Send(t, newEvent(t)).AssertUnknown(t)
		w.LimitStore.InjectFaults(nil)
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
		w.AssertSingleEffect(t, expectedEffect, 2)
	})
}

// A crash never leaves too little counted, and the retry counts nothing twice.
func TestDailyAmountAfterACrash(t *testing.T) {
	for _, at := range []string{"after Insert", "after ClaimReference", "before Replace", "after Replace"} {
		t.Run(at, func(t *testing.T) {
			w := newFixtureWithDailyLimit(t, 600)
			w.Ledger.SetCrashPoint(at, func() { panic("the function crashed") })
			w.Send(t, newEvent(t)).AssertStatus(t, 500)
			w.Clock.Advance(operationtest.LeaseDuration)
			w.Send(t, newEvent(t)).AssertStatus(t, 201)
			w.AssertDailySum(t, 500)
			w.AssertSingleEffect(t, expectedEffect, len(w.Driver.Calls()))
		})
	}
}

// decision "merchant-limits": the rate is checked after authentication and before anything else, and it never delays
// another merchant.
func TestRate(t *testing.T) {
	w := newFixture(t).UpdateDemo(func(p *merchant.Profile) { p.RequestsPerSecond, p.Burst = 1, 2 })
	w.Send(t, newEvent(t)).AssertStatus(t, 201)
	w.Send(t, newEvent(t).SetRawBody("{")).AssertError(t, 400, "SVC0002", "body")
	response := w.Send(t, newEvent(t).SetRawBody("{"))
	response.AssertError(t, 429, "900800")
	response.AssertHeader(t, "Retry-After", "1")
	w.AssertCounted(t, "RateLimitedRequests")
	if name := w.LastLine(t)["Merchant"]; name != "DemoShop" {
		t.Errorf("merchant %v in the log line, want DemoShop", name)
	}
	w.Send(t, newEvent(t).SetHeader("Authorization", "Bearer unknown")).AssertError(t, 401, "900901")
	for i := range 5 {
		w.Send(t, newEventNumbered(t, i).SetHeader("Authorization", operationtest.OtherToken)).AssertStatus(t, 201)
	}
	w.Clock.Advance(time.Second)
	w.Send(t, newEvent(t)).AssertStatus(t, 201)
	w.Clock.Advance(time.Second)
	w.LimitStore.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
	w.Send(t, newEvent(t)).AssertStatus(t, 201) // requests are admitted while the table does not respond
	w.AssertCounted(t, "LimitStoreFailures")
}
