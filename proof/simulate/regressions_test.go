package simulate

import (
	"flag"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/ledger"
)

var searchSeeds = flag.Int("search", 0, "seeds that TestRegressions tries for each row, for old code")

// regression is a defect that the gateway once had: a plan of rates that makes its situation likely, and the seed that
// showed it on the code before. plan decides no order of events.
type regression struct {
	name string
	plan func(*World)
	seed uint64
	// finds is a part of the violation on the code before.
	finds string
}

// regressions are the rows of the table in docs/reliability.md.
var regressions = []regression{
	{"1 hanging payer's SMS", planHangingSMS, 1, "invariant 9"},
	{"2 due keys that do not move", planUnmovedKeys, 1, "invariant 9"},
	{"3 attempts counted by claims", planLostClaims, 7, "is dead after"},
	{"4 duplicate of an expired SMS", planExpiredSMS, 2, "has no effect"},
	{"5 payment parked late", planLateParking, 10, "neither delivered nor dead"},
	{"6 callback key unreadable", planUnreadableCallbackKey, 3, "got 404"},
	{"7 status behind a dead letter", planDeadLetters, 2, "neither delivered nor dead"},
	{"8 receipt before a failed send", planEarlyReceipts, 3, "still listed"},
	{"8 unconfirmed claim of a released payment", planUnconfirmedClaims, 19, "still listed"},
	{"9 count past midnight", planMidnight, 25, "is counted"},
	{"10 fast clock of the sweep", planSkew, 170, "while its attempt was running"},
	{"11 refund after a lost response", planLostRefund, 29, "is still counted"},
}

// TestSuccessAmongReleases runs two histories of an operator that responds 503 to what it applied. A late success was
// stored after a retry had been released, and no day counted it.
func TestSuccessAmongReleases(t *testing.T) {
	const last = 1 << 20
	world := map[string]int{
		"only one merchant and one operator have faults": 0, "shop": 1, "kind of order": 1, "the operator lies": last,
		"has faults of operator call": 1, "rate": last, "has lie: 503 for what was applied": last, "duplicates": last,
		"another body": 0,
	}
	for _, seed := range []uint64{430, 638} {
		if result := runHistory(t, tape.FromSeed(seed).Force(world), Options{}); result.Violation != nil {
			t.Errorf("seed %d: %s", seed, result.Violation)
		}
	}
}

// TestRegressions runs the history that showed each defect. With -search it looks for one in the code as it is.
func TestRegressions(t *testing.T) {
	for _, r := range regressions {
		t.Run(r.name, func(t *testing.T) {
			first, last := r.seed, r.seed
			if *searchSeeds > 0 {
				first, last = 1, uint64(*searchSeeds)
			}
			for seed := first; seed <= last; seed++ {
				result := runHistory(t, tape.FromSeed(seed), Options{Plan: r.plan})
				if result.Violation == nil {
					continue
				}
				if *searchSeeds == 0 || strings.Contains(result.Violation.Error(), r.finds) {
					t.Errorf("seed %d: %s", seed, result.Violation)
					return
				}
			}
		})
	}
}

// TestFoundSeeds runs the seeds without a plan that showed the defects 13, 14 and 15.
func TestFoundSeeds(t *testing.T) {
	for _, seed := range []uint64{50040897, 60050781, 60063872, 700375941} {
		if result := runHistory(t, tape.FromSeed(seed), Options{}); result.Violation != nil {
			t.Errorf("seed %d: %s", seed, result.Violation)
		}
	}
}

// crowded is begin for a history with many due entries of one merchant at one operator. All is well with the others.
func (w *World) crowded() (sick *shop, operatorName string) {
	w.Begin(time.Hour)
	w.Kernel.MaxSteps *= 10
	sick, operatorName = w.shops[1], w.shops[0].Operators[w.Tape.Choose("operator", len(w.shops[0].Operators))]
	w.affected = func(e *ledger.Entry) bool {
		return e.Merchant.ID == sick.profile.ID || e.Route.Operator == operatorName
	}
	w.streamOff = history.Window{From: history.Start, To: history.Start.Add(time.Hour)}
	for number := range 4 {
		w.drawOrder(number, time.Hour)
	}
	return sick, operatorName
}

func planHangingSMS(w *World) {
	sick, operatorName := w.crowded()
	o := w.operators[operatorHost(operatorName)]
	o.Outages = []outside.Outage{{
		Kind: outside.KindPayerSMS, Fault: outside.HangBefore, From: history.Start, To: history.Start.Add(time.Hour),
	}}
	w.Kernel.At(history.Start.Add(10*time.Minute), "crowd", func() { w.addCrowd(sick, operatorName, 1500, -1, true) })
}

func planUnmovedKeys(w *World) {
	sick, operatorName := w.crowded()
	w.unreadable[sick.profile.ID] = history.Window{From: history.Start, To: history.Start.Add(time.Hour)}
	w.Kernel.At(history.Start.Add(10*time.Minute), "crowd", func() {
		for _, o := range w.orders {
			if o.function == functionPay && o.shop != sick {
				shard := ledger.DueShard(ledger.Key{Kind: ledger.Payment, ID: o.shop.Pay(o.number).Key})
				w.addCrowd(sick, operatorName, 1100, shard, false)
				return
			}
		}
	})
}

func planLostClaims(w *World) {
	const length = 4 * 24 * time.Hour
	w.Begin(length)
	w.Rates = history.Rates{Crash: 60}
	w.Faults.Set(outside.Notifications, outside.ServerErrorBefore, 950)
	for number := range 3 {
		w.drawOrder(number, length/24)
	}
}

func planExpiredSMS(w *World) {
	const length = 4 * 24 * time.Hour
	w.Begin(length)
	w.planShortRetention(length)
	w.Rates = history.Rates{LostResponse: 300}
	for number := range 3 {
		w.drawOrder(number, length)
	}
}

func planLateParking(w *World) {
	const day, days = 24 * time.Hour, 7
	w.Begin(days * day)
	w.Faults.Set(outside.CallbackTimes, outside.CallbackNever, 900)
	for _, name := range w.shops[0].Operators {
		to := history.Start.Add(time.Duration(3+w.Tape.Choose("days without lookups", 3)) * day)
		w.operators[operatorHost(name)].Outages = []outside.Outage{{
			Kind: outside.KindLookup, Fault: outside.ServerErrorBefore, From: history.Start, To: to,
		}}
	}
	faults := []outside.Fault{outside.ServerErrorBefore, outside.EndpointGone}
	for _, s := range w.shops {
		for number := range days {
			from := history.Start.Add(time.Duration(number) * day)
			fault := faults[w.Tape.Choose("fault of the day", len(faults))]
			w.servers[s.host].Windows = append(w.servers[s.host].Windows,
				outside.HealthWindow{From: from, To: from.Add(day), Fault: fault})
		}
	}
	for number := range 4 {
		w.drawOrderOf(functionPay, number, day)
	}
}

func planUnreadableCallbackKey(w *World) {
	const length = 2 * time.Hour
	w.Begin(length)
	w.Faults.Set(outside.SecretFetches, outside.SecretError, 400)
	w.Faults.Set(outside.CallbackTimes, outside.CallbackLate, 200)
	w.Rates = history.Rates{ColdStart: 300}
	for range 3 {
		w.planRotations(length)
	}
	for number := range 6 {
		w.drawOrder(number, length)
	}
}

func planDeadLetters(w *World) {
	const length = 4 * 24 * time.Hour
	w.Begin(length)
	w.Faults.Set(outside.Notifications, outside.ServerErrorBefore, 970)
	w.Faults.Set(outside.CallbackTimes, outside.CallbackLate, 300)
	for number := range 4 {
		w.drawOrder(number, length)
	}
}

func planEarlyReceipts(w *World) {
	w.Begin(2 * time.Hour)
	w.Faults.Set(outside.CallbackTimes, outside.CallbackEarly, 800)
	w.Faults.Set(outside.Receipts, outside.ReceiptImpossible, 300)
	w.Faults.Set(outside.OperatorCalls, outside.LieUnavailable, 400)
	w.Faults.Set(outside.OperatorCalls, outside.ResetAfter, 100)
	w.Rates = history.Rates{LostResponse: 200, Freeze: 60}
	for number := range 6 {
		w.drawOrderOf(functionSMS, number, 2*time.Hour)
	}
}

func planUnconfirmedClaims(w *World) {
	w.Begin(4 * time.Hour)
	w.Faults.Set(outside.OperatorCalls, outside.LieUnavailable, 500)
	w.Faults.Set(outside.Payers, outside.PayerNever, 600)
	w.Faults.Set(outside.CallbackContents, outside.CallbackContradicting, 700)
	for number := range 4 {
		w.drawOrderOf(functionPay, number, time.Hour)
	}
}

func planMidnight(w *World) {
	const length = 30 * time.Hour
	w.Begin(length)
	w.Rates = history.Rates{Crash: 40, Table: 60, Freeze: 20, LostResponse: 200}
	w.Faults.Set(outside.OperatorCalls, outside.Unavailable, 100)
	for number := range 6 {
		w.drawOrder(number, length)
	}
}

func planSkew(w *World) {
	const length = 2 * time.Hour
	w.Begin(length)
	w.Rates = history.Rates{Skew: 1, ColdStart: 300}
	w.Faults.Set(outside.OperatorCalls, outside.SlowAfter, 400)
	w.Faults.Set(outside.OperatorCalls, outside.HangAfter, 200)
	for number := range 8 {
		w.drawOrder(number, length)
	}
}

func planLostRefund(w *World) {
	w.Begin(time.Hour)
	w.Rates = history.Rates{Table: 60}
	w.Faults.Set(outside.Payers, outside.PayerFails, 900)
	w.Faults.Set(outside.CallbackTimes, outside.CallbackNever, 900)
	w.Faults.Set(outside.Notifications, outside.ServerErrorBefore, 900)
	w.drawOrderOfShop(w.limitedShop(), functionPay, 0, time.Minute)
}
