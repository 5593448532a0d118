package simulate

import (
	"slices"
	"time"

	"mobilegateway/proof/simulate/outside"
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
	length := w.drawLength()
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
	for number := range draw(w, "orders", orderCounts...) {
		w.drawOrder(number, length)
	}
	w.drawReads()
}

// drawRates draws which faults a history has, and how often.
func (w *World) drawRates() {
	rate := func(label string) int { return draw(w, label, 0, 0, 20, 100, 300) }
	w.rates = rates{
		table: rate("rate of table faults") / 4, lag: rate("rate of lag"), crash: rate("rate of crashes") / 8,
		freeze: rate("rate of freezes") / 10, coldStart: rate("rate of cold starts"), skew: rate("clock skew"),
		lostResponse: rate("rate of lost responses"), lateStream: rate("rate of late records"),
		doubleStream: rate("rate of repeated records"), noSweep: rate("rate of missing sweeps"),
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
			w.faults.Set(group, fault, draw(w, "rate", 15, 60, 150))
		}
	}
}

// draw draws one of some values. The first is the harmless one.
func draw[T any](w *World, label string, values ...T) T {
	return values[w.tape.Choose(label, len(values))]
}

// drawLength draws the length of the faults, and begins with it.
func (w *World) drawLength() time.Duration {
	length := draw(w, "length of the faults", 10*time.Minute, 2*time.Hour, 30*time.Hour, 4*24*time.Hour)
	w.begin(length)
	return length
}

// begin sets the length of a plan's faults.
func (w *World) begin(length time.Duration) {
	w.faultsEnd = bubbleStart.Add(length)
	w.end = w.faultsEnd.Add(quietTime)
}
