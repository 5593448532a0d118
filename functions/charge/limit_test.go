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

// limited is a shop that may charge an amount a day.
func limited(t testing.TB, minor int64) *operationtest.World {
	t.Helper()
	w := shop(t)
	w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"XOF": minor} })
	return w
}

// fresh is another charge of 500 XOF.
func fresh(t testing.TB, number int) *operationtest.Event {
	t.Helper()
	return event(t).Set(correlator, fmt.Sprint("c-", number)).Set(reference, fmt.Sprint("REF-", number))
}

// spent compares what the day has counted.
func spent(t testing.TB, w *operationtest.World, want int64) {
	t.Helper()
	if got := w.Limits.Sum(demo, "XOF"); got != want {
		t.Errorf("counted %d, want %d", got, want)
	}
}

// decision "merchant-limits": what is left is told, repeats are never refused, and the refused key may come again.
func TestDailyAmount(t *testing.T) {
	w := limited(t, 1200)
	first := w.Do(t, event(t)).Succeeds(t, 201)
	w.Do(t, fresh(t, 2)).Succeeds(t, 201)
	w.Do(t, fresh(t, 3)).Fails(t, 403, "POL0001", "Daily amount limit exceeded", "200", "XOF")
	if line := w.LastLine(t); line["LimitRefused"] != 1.0 || line["ErrorID"] != "POL0001" {
		t.Errorf("line %v", line)
	}
	w.Do(t, event(t)).Replays(t, first)
	w.Do(t, other(t)).Replays(t, first)
	spent(t, w, 1000)
	w.Do(t, fresh(t, 3).Set(amount, "200")).Succeeds(t, 201)
	w.Do(t, fresh(t, 4)).Fails(t, 403, "POL0001", "Daily amount limit exceeded", "0", "XOF")
	spent(t, w, 1200)
	w.Do(t, fresh(t, 5).Header("Authorization", operationtest.OtherToken)).Succeeds(t, 201)
	w.Clock.Advance(24 * time.Hour)
	w.Do(t, fresh(t, 4)).Succeeds(t, 201)
	if len(w.Driver.Effects()) != 5 {
		t.Errorf("effects %v", w.Driver.Effects())
	}
}

// Another currency's charges are not counted, and cost nothing; nor do those of a merchant without limits.
func TestWithoutALimit(t *testing.T) {
	w := limited(t, 1)
	w.Do(t, event(t).Header("X-Operator-MCO", "OCM").Set(currency, "XAF")).Succeeds(t, 201)
	w.Do(t, event(t).Header("Authorization", operationtest.OtherToken)).Succeeds(t, 201)
	if w.Limits.Transfers()+w.Limits.Moves(demo) != 0 {
		t.Error("the table of limits was asked")
	}
}

// In DR Congo an amount counts units; the limit is in dollars (decisions "charge-odc-unit" and "merchant-limits").
func TestDailyAmountInUnits(t *testing.T) {
	w := shop(t)
	w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"USD": 2000} })
	congo := func(number int, units string) *operationtest.Event {
		return fresh(t, number).Header("X-Operator-MCO", "ODC").Set(currency, "USD").Set(amount, units)
	}
	w.Do(t, congo(1, "750")).Succeeds(t, 201)
	w.Do(t, congo(2, "1500")).Fails(t, 403, "POL0001", "Daily amount limit exceeded", "12.50", "USD")
}

// What was certainly not applied is given back; what is unknown is not, and is sent again whatever is left.
func TestGivenBack(t *testing.T) {
	cases := []struct {
		name    string
		behave  operationtest.Behaviour
		status  int
		counted int64
	}{
		{"refused", operationtest.Refuse("POL1000"), 403, 0},
		{"down", operationtest.Down, 503, 0},
		{"rejected", operationtest.Reject("SVC0002", "x"), 400, 0},
		{"lost, and applied", operationtest.LoseAnswer, 504, 500},
		{"lost", operationtest.Vanish, 504, 500},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := limited(t, 600)
			w.Driver.Script(c.behave)
			if answer := w.Do(t, event(t)); answer.Status != c.status {
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
			spent(t, w, c.counted)
			if c.status == 503 || c.status == 504 {
				w.Do(t, event(t)).Succeeds(t, 201)
				spent(t, w, 500)
			}
		})
	}
	t.Run("an unknown one is sent again though the limit was lowered", func(t *testing.T) {
		w := limited(t, 600)
		w.Driver.Script(operationtest.LoseAnswer)
		w.Do(t, event(t)).Fails(t, 504, "SVC0001", "PDK_SMSW_0011")
		w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"XOF": 1} })
		w.Do(t, event(t)).Succeeds(t, 201)
		w.OneEffect(t, effect, 2)
		spent(t, w, 500)
	})
	t.Run("one that began without a limit is not counted later", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.LoseAnswer)
		w.Do(t, event(t)).Fails(t, 504, "SVC0001", "PDK_SMSW_0011")
		w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"XOF": 1} })
		w.Do(t, event(t)).Succeeds(t, 201)
		spent(t, w, 0)
	})
}

// A table that does not answer sends nothing: 503, and the same request may come again.
func TestTheTableOfLimitsFails(t *testing.T) {
	for name, how := range map[string]limitmem.Fault{"nothing was applied": limitmem.Error, "the answer was lost": limitmem.LostAnswer} {
		t.Run(name, func(t *testing.T) {
			w := limited(t, 600)
			w.Limits.SetFaults(func() limitmem.Fault { return how })
			answer := w.Do(t, event(t))
			answer.Fails(t, 503, "SVC0001", "PDK_SMSW_0013")
			if answer.Header["Retry-After"] == "" || len(w.Driver.Calls()) != 0 || w.LastLine(t)["LimitFailures"] == nil {
				t.Errorf("%v, line %v", answer.Header, w.LastLine(t))
			}
			w.Limits.SetFaults(nil)
			w.Do(t, event(t)).Succeeds(t, 201)
			spent(t, w, 500)
			w.OneEffect(t, effect, 1)
		})
	}
	t.Run("after an unknown it stays unknown", func(t *testing.T) {
		w := limited(t, 600)
		w.Driver.Script(operationtest.LoseAnswer)
		w.Do(t, event(t)).Fails(t, 504, "SVC0001", "PDK_SMSW_0011")
		w.Limits.SetFaults(func() limitmem.Fault { return limitmem.Error })
		w.Do(t, event(t)).Fails(t, 504, "SVC0001", "PDK_SMSW_0011")
		w.Limits.SetFaults(nil)
		w.Do(t, event(t)).Succeeds(t, 201)
		w.OneEffect(t, effect, 2)
	})
	t.Run("what cannot be given back stays counted, and the answer is the same", func(t *testing.T) {
		w := limited(t, 600)
		calls := 0
		w.Limits.SetFaults(func() limitmem.Fault {
			if calls++; calls > 1 {
				return limitmem.Error
			}
			return limitmem.None
		})
		w.Driver.Script(operationtest.Refuse("POL1000"))
		w.Do(t, event(t)).Fails(t, 403, "POL1000")
		spent(t, w, 500)
		if w.LastLine(t)["LimitFailures"] != 1.0 {
			t.Errorf("line %v", w.LastLine(t))
		}
	})
	t.Run("a refusal that cannot be stored is an error, and nothing was sent", func(t *testing.T) {
		w := limited(t, 1)
		w.Ledger.SetFaults(func(call ledgermem.Call) ledgermem.Fault {
			if call.Operation == ledgermem.Replace {
				return ledgermem.Error
			}
			return ledgermem.None
		})
		w.Do(t, event(t)).Fails(t, 500, "SVC0001", "PDK_SMSW_0001")
		w.Ledger.SetFaults(nil)
		if len(w.Driver.Calls()) != 0 || w.Only(t, ledger.Charge).State != ledger.Reserved {
			t.Error("something was sent")
		}
	})
}

// A crash leaves too much counted at most, and the retry counts nothing twice.
func TestDailyAmountAfterACrash(t *testing.T) {
	for _, at := range []string{"after Insert", "after ClaimReference", "before Replace", "after Replace"} {
		t.Run(at, func(t *testing.T) {
			w := limited(t, 600)
			w.Store.Trap(at, func() { panic("the function died") })
			w.Do(t, event(t)).Succeeds(t, 500)
			w.Clock.Advance(lease)
			w.Do(t, event(t)).Succeeds(t, 201)
			spent(t, w, 500)
			w.OneEffect(t, effect, len(w.Driver.Calls()))
		})
	}
}

// Parallel repeats of one charge count once, and parallel charges fit exactly.
func TestDailyAmountInParallel(t *testing.T) {
	w := limited(t, 2500)
	var group sync.WaitGroup
	var mutex sync.Mutex
	by := map[int]int{}
	for i := range 40 {
		e := fresh(t, i/4)
		group.Go(func() {
			answer := w.Do(t, e)
			mutex.Lock()
			defer mutex.Unlock()
			by[answer.Status]++
		})
	}
	group.Wait()
	if len(w.Driver.Effects()) != 5 || by[201] < 5 || by[500]+by[503]+by[504] > 0 {
		t.Errorf("%d effects, answers %v", len(w.Driver.Effects()), by)
	}
	spent(t, w, 2500)
}

// What the limits cost: one write for the rate of any request, one transaction for the amount of a first one, another for
// what is given back; and nothing while they are off.
func TestLimitsCost(t *testing.T) {
	w := shop(t)
	w.Do(t, event(t)).Succeeds(t, 201)
	if w.Limits.Moves(demo)+w.Limits.Transfers() != 0 {
		t.Error("limits that are off were asked")
	}
	w = limited(t, 2000)
	w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.RequestsPerSecond = 100 })
	spends := func(name string, e *operationtest.Event, moves, transfers int) {
		t.Helper()
		rates, amounts := w.Limits.Moves(demo), w.Limits.Transfers()
		w.Do(t, e)
		if rates, amounts = w.Limits.Moves(demo)-rates, w.Limits.Transfers()-amounts; rates != moves || amounts != transfers {
			t.Errorf("%s: %d writes for the rate, %d transactions", name, rates, amounts)
		}
	}
	spends("a first charge", event(t), 1, 1)
	w.Counts(t, 1, 1, 1, 1)
	spends("its repeat", event(t), 1, 0)
	w.Driver.Script(operationtest.Refuse("POL1000"))
	spends("a refused one", fresh(t, 2), 1, 2)
	spends("one that is over the limit", fresh(t, 3).Set(amount, "5000"), 1, 1)
	w.Driver.Script(operationtest.LoseAnswer)
	spends("an unknown one", fresh(t, 4), 1, 1)
	spends("its retry", fresh(t, 4), 1, 2)
}

// decision "merchant-limits": the rate comes after authentication and before anything else, and another merchant never
// waits for it.
func TestRate(t *testing.T) {
	w := shop(t)
	w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.RequestsPerSecond, p.Burst = 1, 2 })
	w.Do(t, event(t)).Succeeds(t, 201)
	w.Do(t, event(t).Raw("{")).Fails(t, 400, "SVC0002", "body")
	answer := w.Do(t, event(t).Raw("{"))
	answer.Fails(t, 429, "900800")
	if answer.Header["Retry-After"] != "1" {
		t.Errorf("Retry-After %q", answer.Header["Retry-After"])
	}
	if line := w.LastLine(t); line["Throttled"] != 1.0 || line["Merchant"] != "DemoShop" {
		t.Errorf("line %v", line)
	}
	w.Do(t, event(t).Header("Authorization", "Bearer nobody")).Fails(t, 401, "900901")
	for i := range 5 {
		w.Do(t, fresh(t, i).Header("Authorization", operationtest.OtherToken)).Succeeds(t, 201)
	}
	w.Clock.Advance(time.Second)
	w.Do(t, event(t)).Succeeds(t, 201)
	w.Clock.Advance(time.Second)
	w.Limits.SetFaults(func() limitmem.Fault { return limitmem.Error })
	w.Do(t, event(t)).Succeeds(t, 201) // a table that does not answer lets requests in
	if w.LastLine(t)["LimitFailures"] != 1.0 {
		t.Errorf("line %v", w.LastLine(t))
	}
}
