package simulate

import (
	"slices"
	"time"

	"mobilegateway/internal/simulate/outside"
)

// rates are the rates of the world's own faults, per mille.
type rates struct {
	table, lag, crash, freeze, coldStart, skew      int
	lostResponse, lateStream, doubleStream, noSweep int
	doubleSweep                                     int
}

// liarFaults are the faults of an operator that lies. A history has them rarely, because they weaken what can hold.
var liarFaults = []outside.Fault{
	outside.LieUnavailable, outside.LieDuplicate, outside.LieNotFound, outside.LieReversed,
}

func isLie(fault outside.Fault) bool { return slices.Contains(liarFaults, fault) }

// faultGroups are the groups of the models' faults, in the order in which their rates are drawn.
var faultGroups = []outside.Group{
	outside.OperatorCalls, outside.Lookups, outside.Payers, outside.Receipts, outside.CallbackTimes,
	outside.CallbackContents, outside.Notifications, outside.MerchantServers, outside.SecretFetches,
}

// orderCounts are the numbers of orders in a history, the more frequent ones more often. Most promises are about one
// order; several share a merchant's amounts and the queue.
var orderCounts = []int{1, 1, 1, 2, 2, 3}

// drawHistory draws the rates, the orders and the windows of a history. About half of the kinds of faults are off in
// each history, so that each history is hostile in its own way.
func (w *World) drawHistory() {
	lengths := []time.Duration{10 * time.Minute, 2 * time.Hour, 30 * time.Hour, 4 * 24 * time.Hour}
	length := lengths[w.tape.Choose("length of the faults", len(lengths))]
	w.faultsEnd = bubbleStart.Add(length)
	w.end = w.faultsEnd.Add(quietTime)
	w.hasOtherAmounts, w.hasSharedKeys, w.hasLargeAmounts = true, true, true
	if w.tape.Choose("only one merchant and one operator have faults", 10) == 9 {
		w.drawConfined(length)
		return
	}
	w.drawRates()
	w.drawHazards(length)
	for _, s := range w.shops {
		w.planHealth(s, length)
	}
	for number := range orderCounts[w.tape.Choose("orders", len(orderCounts))] {
		w.drawOrder(number, length)
	}
	w.drawReads()
}

// drawRates draws which faults a history has, and how often.
func (w *World) drawRates() {
	intensity := []int{0, 0, 20, 100, 300}
	draw := func(label string) int { return intensity[w.tape.Choose(label, len(intensity))] }
	w.rates = rates{
		table: draw("rate of table faults") / 4, lag: draw("rate of lag"), crash: draw("rate of crashes") / 8,
		freeze: draw("rate of freezes") / 10, coldStart: draw("rate of cold starts"), skew: draw("clock skew"),
		lostResponse: draw("rate of lost responses"), lateStream: draw("rate of late records"),
		doubleStream: draw("rate of repeated records"), noSweep: draw("rate of missing sweeps"),
	}
	liar := w.tape.Choose("the operator lies", 20) == 19
	for _, group := range faultGroups {
		if w.tape.Choose("has faults of "+string(group), 2) == 0 {
			continue
		}
		for _, fault := range outside.FaultsOf(group) {
			if isLie(fault) && !liar || w.tape.Choose("has "+string(fault), 3) != 2 {
				continue
			}
			w.faults.Set(group, fault, []int{15, 60, 150}[w.tape.Choose("rate", 3)])
		}
	}
}

// begin sets the length of a plan's faults.
func (w *World) begin(length time.Duration) {
	w.faultsEnd = bubbleStart.Add(length)
	w.end = w.faultsEnd.Add(quietTime)
}
