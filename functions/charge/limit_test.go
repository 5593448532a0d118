package charge_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/limitmem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// demo is DemoShop's id.
const demo = "demo0001"

// newFixtureWithDailyLimit is a shop that may charge an amount a day.
func newFixtureWithDailyLimit(t testing.TB, minor int64) *operationtest.Fixture {
	t.Helper()
	w := newFixture(t)
	w.SetDailyLimit(minor)
	return w
}

// newEventNumbered is another charge of 500 XOF.
func newEventNumbered(t testing.TB, number int) *operationtest.Event {
	t.Helper()
	return newEvent(t).SetBodyPart(correlator, fmt.Sprint("c-", number)).SetBodyPart(reference, fmt.Sprint("REF-", number))
}

// decision "merchant-limits": what is left is told, repeats are never refused, and the refused key may come again.
func TestDailyAmount(t *testing.T) {
	w := newFixtureWithDailyLimit(t, 1200)
	first := w.Send(t, newEvent(t)).AssertStatus(t, 201)
	w.Send(t, newEventNumbered(t, 2)).AssertStatus(t, 201)
	w.Send(t, newEventNumbered(t, 3)).AssertError(t, 403, "POL0001", "Daily amount limit exceeded", "200", "XOF")
	if line := w.LastLine(t); line["DailyLimitRefusals"] != 1.0 || line["ErrorID"] != "POL0001" {
		t.Errorf("line %v", line)
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
		t.Errorf("effects %v", w.Driver.Effects())
	}
}

// Another currency's charges are not counted, and cost nothing; nor do those of a merchant without limits.
func TestNoDailyLimit(t *testing.T) {
	w := newFixtureWithDailyLimit(t, 1)
	w.Send(t, newEvent(t).SetHeader("X-Operator-MCO", "OCM").SetBodyPart(currency, "XAF")).AssertStatus(t, 201)
	w.Send(t, newEvent(t).SetHeader("Authorization", operationtest.OtherToken)).AssertStatus(t, 201)
	if w.LimitStore.AmountWrites()+w.LimitStore.RateWrites(demo) != 0 {
		t.Error("the table of limits was asked")
	}
}

// In DR Congo an amount counts units; the limit is in dollars (decisions "charge-odc-unit" and "merchant-limits").
func TestDailyAmountInUnits(t *testing.T) {
	w := newFixture(t)
	w.Merchants.UpdateProfile(operationtest.DemoToken, func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"USD": 2000} })
	congo := func(number int, units string) *operationtest.Event {
		return newEventNumbered(t, number).SetHeader("X-Operator-MCO", "ODC").SetBodyPart(currency, "USD").SetBodyPart(amount, units)
	}
	w.Send(t, congo(1, "750")).AssertStatus(t, 201)
	w.Send(t, congo(2, "1500")).AssertError(t, 403, "POL0001", "Daily amount limit exceeded", "12.50", "USD")
}

// What was certainly not applied is given back; what is unknown is not, and is sent again whatever is left.
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
		{"lost, and applied", operationtest.LoseResponse, 504, 500},
		{"lost", operationtest.LoseRequest, 504, 500},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newFixtureWithDailyLimit(t, 600)
			w.Driver.SetBehaviours(c.behave)
			if response := w.Send(t, newEvent(t)); response.Status != c.status {
				t.Errorf("%d %s", response.Status, response.Body)
			}
			w.AssertDailySum(t, c.counted)
			if c.status == 503 || c.status == 504 {
				w.Send(t, newEvent(t)).AssertStatus(t, 201)
				w.AssertDailySum(t, 500)
			}
		})
	}
	t.Run("an unknown one is sent again though the limit was lowered", func(t *testing.T) {
		w := newFixtureWithDailyLimit(t, 600)
		w.Driver.SetBehaviours(operationtest.LoseResponse)
		w.Send(t, newEvent(t)).AssertUnknown(t)
		w.SetDailyLimit(1)
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
		w.AssertSingleEffect(t, expectedEffect, 2)
		w.AssertDailySum(t, 500)
	})
	t.Run("one that began without a limit is not counted later", func(t *testing.T) {
		w := newFixture(t)
		w.Driver.SetBehaviours(operationtest.LoseResponse)
		w.Send(t, newEvent(t)).AssertUnknown(t)
		w.SetDailyLimit(1)
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
		w.AssertDailySum(t, 0)
	})
}

// A table that does not answer sends nothing: 503, and the same request may come again.
func TestLimitStoreFailure(t *testing.T) {
	for name, injectedFault := range map[string]limitmem.Fault{"nothing was applied": limitmem.Error, "the answer was lost": limitmem.LostResponse} {
		t.Run(name, func(t *testing.T) {
			w := newFixtureWithDailyLimit(t, 600)
			w.LimitStore.SetFaults(func() limitmem.Fault { return injectedFault })
			response := w.Send(t, newEvent(t))
			response.AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
			if response.Header["Retry-After"] == "" || len(w.Driver.Calls()) != 0 || w.LastLine(t)["LimitStoreFailures"] == nil {
				t.Errorf("%v, line %v", response.Header, w.LastLine(t))
			}
			w.LimitStore.SetFaults(nil)
			w.Send(t, newEvent(t)).AssertStatus(t, 201)
			w.AssertDailySum(t, 500)
			w.AssertSingleEffect(t, expectedEffect, 1)
		})
	}
	t.Run("after an unknown it stays unknown", func(t *testing.T) {
		w := newFixtureWithDailyLimit(t, 600)
		w.Driver.SetBehaviours(operationtest.LoseResponse)
		w.Send(t, newEvent(t)).AssertUnknown(t)
		w.LimitStore.SetFaults(func() limitmem.Fault { return limitmem.Error })
		w.Send(t, newEvent(t)).AssertUnknown(t)
		w.LimitStore.SetFaults(nil)
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
		w.AssertSingleEffect(t, expectedEffect, 2)
	})
	t.Run("what cannot be given back stays counted, and the answer is the same", func(t *testing.T) {
		w := newFixtureWithDailyLimit(t, 600)
		calls := 0
		w.LimitStore.SetFaults(func() limitmem.Fault {
			if calls++; calls > 1 {
				return limitmem.Error
			}
			return limitmem.None
		})
		w.Driver.SetBehaviours(operationtest.RefuseFinally("POL1000"))
		w.Send(t, newEvent(t)).AssertError(t, 403, "POL1000")
		w.AssertDailySum(t, 500)
		w.AssertCounted(t, "LimitStoreFailures")
	})
	t.Run("a refusal that cannot be stored is an error, and nothing was sent", func(t *testing.T) {
		w := newFixtureWithDailyLimit(t, 1)
		w.Ledger.InjectFaults(func(call ledgermem.Call) ledgermem.InjectedFault {
			if call.Operation == ledgermem.Replace {
				return ledgermem.FailedBeforeApply
			}
			return ledgermem.NoFault
		})
		w.Send(t, newEvent(t)).AssertError(t, 500, "SVC0001", "PDK_SMSW_0001")
		w.Ledger.InjectFaults(nil)
		if len(w.Driver.Calls()) != 0 || w.OnlyEntry(t, ledger.Charge).State != ledger.Reserved {
			t.Error("something was sent")
		}
	})
}

// A crash leaves too much counted at most, and the retry counts nothing twice.
func TestDailyAmountAfterACrash(t *testing.T) {
	for _, at := range []string{"after Insert", "after ClaimReference", "before Replace", "after Replace"} {
		t.Run(at, func(t *testing.T) {
			w := newFixtureWithDailyLimit(t, 600)
			w.Writer.SetCrashPoint(at, func() { panic("the function died") })
			w.Send(t, newEvent(t)).AssertStatus(t, 500)
			w.Clock.Advance(operationtest.LeaseDuration)
			w.Send(t, newEvent(t)).AssertStatus(t, 201)
			w.AssertDailySum(t, 500)
			w.AssertSingleEffect(t, expectedEffect, len(w.Driver.Calls()))
		})
	}
}

// Parallel repeats of one charge count once, and parallel charges fit exactly.
func TestDailyAmountInParallel(t *testing.T) {
	w := newFixtureWithDailyLimit(t, 2500)
	var group sync.WaitGroup
	var mutex sync.Mutex
	by := map[int]int{}
	for i := range 40 {
		e := newEventNumbered(t, i/4)
		group.Go(func() {
			response := w.Send(t, e)
			mutex.Lock()
			defer mutex.Unlock()
			by[response.Status]++
		})
	}
	group.Wait()
	if len(w.Driver.Effects()) != 5 || by[201] < 5 || by[500]+by[503]+by[504] > 0 {
		t.Errorf("%d effects, answers %v", len(w.Driver.Effects()), by)
	}
	w.AssertDailySum(t, 2500)
}

// What the limits cost: one write for the rate of any request, one transaction for the amount of a first one, another
// for what is given back; and nothing while they are off.
func TestLimitWriteCount(t *testing.T) {
	w := newFixture(t)
	w.Send(t, newEvent(t)).AssertStatus(t, 201)
	if w.LimitStore.RateWrites(demo)+w.LimitStore.AmountWrites() != 0 {
		t.Error("limits that are off were asked")
	}
	w = newFixtureWithDailyLimit(t, 2000)
	w.Merchants.UpdateProfile(operationtest.DemoToken, func(p *merchant.Profile) { p.RequestsPerSecond = 100 })
	spends := func(name string, e *operationtest.Event, moves, transfers int) {
		t.Helper()
		rates, amounts := w.LimitStore.RateWrites(demo), w.LimitStore.AmountWrites()
		w.Send(t, e)
		if rates, amounts = w.LimitStore.RateWrites(demo)-rates, w.LimitStore.AmountWrites()-amounts; rates != moves || amounts != transfers {
			t.Errorf("%s: %d writes for the rate, %d transactions", name, rates, amounts)
		}
	}
	spends("a first charge", newEvent(t), 1, 1)
	w.AssertCallCounts(t, 1, 1, 1, 1)
	spends("its repeat", newEvent(t), 1, 0)
	w.Driver.SetBehaviours(operationtest.RefuseFinally("POL1000"))
	spends("a refused one", newEventNumbered(t, 2), 1, 2)
	spends("one that is over the limit", newEventNumbered(t, 3).SetBodyPart(amount, "5000"), 1, 1)
	w.Driver.SetBehaviours(operationtest.LoseResponse)
	spends("an unknown one", newEventNumbered(t, 4), 1, 1)
	spends("its retry", newEventNumbered(t, 4), 1, 2)
}

// decision "merchant-limits": the rate comes after authentication and before anything else, and another merchant never
// waits for it.
func TestRate(t *testing.T) {
	w := newFixture(t)
	w.Merchants.UpdateProfile(operationtest.DemoToken, func(p *merchant.Profile) { p.RequestsPerSecond, p.Burst = 1, 2 })
	w.Send(t, newEvent(t)).AssertStatus(t, 201)
	w.Send(t, newEvent(t).SetRawBody("{")).AssertError(t, 400, "SVC0002", "body")
	response := w.Send(t, newEvent(t).SetRawBody("{"))
	response.AssertError(t, 429, "900800")
	if response.Header["Retry-After"] != "1" {
		t.Errorf("Retry-After %q", response.Header["Retry-After"])
	}
	if line := w.LastLine(t); line["RateLimitedRequests"] != 1.0 || line["Merchant"] != "DemoShop" {
		t.Errorf("line %v", line)
	}
	w.Send(t, newEvent(t).SetHeader("Authorization", "Bearer unknown")).AssertError(t, 401, "900901")
	for i := range 5 {
		w.Send(t, newEventNumbered(t, i).SetHeader("Authorization", operationtest.OtherToken)).AssertStatus(t, 201)
	}
	w.Clock.Advance(time.Second)
	w.Send(t, newEvent(t)).AssertStatus(t, 201)
	w.Clock.Advance(time.Second)
	w.LimitStore.SetFaults(func() limitmem.Fault { return limitmem.Error })
	w.Send(t, newEvent(t)).AssertStatus(t, 201) // a table that does not answer lets requests in
	w.AssertCounted(t, "LimitStoreFailures")
}
