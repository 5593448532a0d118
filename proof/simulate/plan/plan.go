// Package plan draws who does what in a history, and when: the rates of faults, the orders, and the hazards.
package plan

import (
	"mobilegateway/proof/simulate/hazards"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/proof/simulate/world"
)

// orderCounts are the numbers of orders in a history, the more frequent ones more often. Most promises are about one
// order; several share a merchant's amounts and the queue.
var orderCounts = []int{1, 1, 1, 2, 2, 3}

// Draw draws the rates, the orders and the windows of a history. About half of the kinds of faults are off in
// each history, so that each history is hostile in its own way.
func Draw(w *world.World) {
	length := drawLength(w)
	w.Merchants.Kinds = merchants.Kinds{OtherAmounts: true, SharedKeys: true, LargeAmounts: true}
	if w.Tape.Choose("only one merchant and one operator have faults", 10) == 9 {
		drawConfined(w, length)
		return
	}
	drawRates(w)
	hazards.Draw(w, length)
	for _, s := range w.Merchants.Shops {
		w.Merchants.PlanHealth(s, length)
	}
	for number := range tape.Draw(w.Tape, "orders", orderCounts...) {
		w.Merchants.Draw(number, length)
	}
	w.Merchants.DrawReads()
	w.Merchants.DrawResends()
}
