package simulate

import (
	"cmp"
	"flag"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/proof/simulate/world"
	"mobilegateway/shared/ledger"
)

var searchSeeds = flag.Int("search", 0, "seeds that TestRegressions tries for each row, for old code")

// regression is a defect that the gateway once had: rates and orders that make its situation likely, and the seed that
// showed it on the code before. They decide no order of events.
type regression struct {
	name string
	seed uint64
	// finds is a part of the violation on the code before.
	finds  string
	length time.Duration
	rates  history.Rates
	faults []faultRate
	// first plans what comes before the orders.
	first func(w *world.World, length time.Duration)
	// The orders are of one function, "" for any, and start within a time, 0 for the length.
	orders   int
	function string
	within   time.Duration
}

type faultRate struct {
	group outside.Group
	fault outside.Fault
	rate  int
}

const day = 24 * time.Hour

// regressions are the rows of the table in docs/reliability.md that no known-bad variant puts in again.
var regressions = []regression{
	{name: "1 hanging payer's SMS", seed: 1, finds: "invariant 9", length: time.Hour, first: planHangingSMS},
	{name: "2 due keys that do not move", seed: 1, finds: "invariant 9", length: time.Hour, first: planUnmovedKeys},
	{
		name: "5 payment parked late", seed: 10, finds: "neither delivered nor dead", length: 7 * day,
		faults: []faultRate{{outside.CallbackTimes, outside.CallbackNever, 900}}, first: planLateParking,
		orders: 4, function: deployment.Pay, within: day,
	},
	{
		name: "8 receipt before a failed send", seed: 3, finds: "still listed", length: 2 * time.Hour, orders: 6,
		function: deployment.SMS, rates: history.Rates{LostResponse: 200, Freeze: 60}, faults: []faultRate{
			{outside.CallbackTimes, outside.CallbackEarly, 800}, {outside.Receipts, outside.ReceiptImpossible, 300},
			{outside.OperatorCalls, outside.LieUnavailable, 400}, {outside.OperatorCalls, outside.ResetAfter, 100},
		},
	},
	{
		name: "8 unconfirmed claim of a released payment", seed: 19, finds: "still listed", length: 4 * time.Hour,
		orders: 4, function: deployment.Pay, within: time.Hour, faults: []faultRate{
			{outside.OperatorCalls, outside.LieUnavailable, 500}, {outside.Payers, outside.PayerNever, 600},
			{outside.CallbackContents, outside.CallbackContradicting, 700},
		},
	},
	{
		name: "11 refund after a lost response", seed: 29, finds: "is still counted", length: time.Hour,
		rates: history.Rates{Table: 60}, faults: []faultRate{
			{outside.Payers, outside.PayerFails, 900}, {outside.CallbackTimes, outside.CallbackNever, 900},
			{outside.Notifications, outside.ServerErrorBefore, 900},
		},
		first: func(w *world.World, _ time.Duration) {
			w.Merchants.DrawOfShop(w.Merchants.Limited(), deployment.Pay, 0, time.Minute)
		},
	},
}

// plan plans the history of a regression.
func (r regression) plan(w *world.World) {
	w.Begin(r.length)
	w.Rates = r.rates
	for _, row := range r.faults {
		w.Faults.Set(row.group, row.fault, row.rate)
	}
	if r.first != nil {
		r.first(w, r.length)
	}
	for number := range r.orders {
		if within := cmp.Or(r.within, r.length); r.function == "" {
			w.Merchants.Draw(number, within)
		} else {
			w.Merchants.DrawOf(r.function, number, within)
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

// crowded plans a history with many due entries of one merchant at one operator. All is well with the others.
func crowded(w *world.World, length time.Duration) (sick *fixture.Shop, operatorName string) {
	w.Kernel.MaxSteps *= 10
	sick, operatorName = w.Merchants.Shops[1], tape.Draw(w.Tape, "operator", w.Operators.Names...)
	w.Check.Confine(func(e *ledger.Entry) bool {
		return e.Merchant.ID == sick.Profile.ID || e.Route.Operator == operatorName
	})
	w.Stream.Off = history.Window{From: history.Start, To: history.Start.Add(length)}
	for number := range 4 {
		w.Merchants.Draw(number, length)
	}
	return sick, operatorName
}

func planHangingSMS(w *world.World, length time.Duration) {
	sick, operatorName := crowded(w, length)
	w.Operators.Model(operatorName).Outages = []outside.Outage{{
		Kind: outside.KindPayerSMS, Fault: outside.HangBefore, From: history.Start, To: history.Start.Add(length),
	}}
	w.Kernel.At(history.Start.Add(10*time.Minute), "crowd", func() { w.StoreCrowd(sick, operatorName, 1500, -1, true) })
}

func planUnmovedKeys(w *world.World, length time.Duration) {
	sick, operatorName := crowded(w, length)
	w.Unreadable[sick.Profile.ID] = history.Window{From: history.Start, To: history.Start.Add(length)}
	w.Kernel.At(history.Start.Add(10*time.Minute), "crowd", func() {
		for _, o := range w.Merchants.Orders {
			if o.Function == deployment.Pay && o.Shop != sick {
				shard := ledger.DueShard(ledger.Key{Kind: ledger.Payment, ID: o.Shop.Pay(o.Number).Key})
				w.StoreCrowd(sick, operatorName, 1100, shard, false)
				return
			}
		}
	})
}

func planLateParking(w *world.World, length time.Duration) {
	w.Operators.Each(func(o *outside.Operator) {
		to := history.Start.Add(time.Duration(3+w.Tape.Choose("days without lookups", 3)) * day)
		o.Outages = []outside.Outage{{
			Kind: outside.KindLookup, Fault: outside.ServerErrorBefore, From: history.Start, To: to,
		}}
	})
	for _, s := range w.Merchants.Shops {
		server := w.Merchants.Servers[s.Host]
		for from := history.Start; from.Before(history.Start.Add(length)); from = from.Add(day) {
			fault := tape.Draw(w.Tape, "fault of the day", outside.ServerErrorBefore, outside.EndpointGone)
			server.Windows = append(server.Windows, outside.HealthWindow{From: from, To: from.Add(day), Fault: fault})
		}
	}
}
