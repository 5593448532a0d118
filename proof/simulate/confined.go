package simulate

import (
	"time"

	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

// planHealth decides when a merchant's server is down.
func (w *World) planHealth(s *shop, length time.Duration) {
	server := w.servers[s.host]
	server.PlanHealth(bubbleStart, length, w.tape)
	for _, broken := range server.Windows {
		w.brokenUntil(broken.To)
	}
}

// drawConfined draws a history in which only one merchant and one operator have faults. All is well with the others, so
// their notifications are never late.
func (w *World) drawConfined(length time.Duration) {
	w.count("history with faults of one merchant and one operator")
	shopAt := w.tape.Choose("affected merchant", len(w.shops))
	sick, names := w.shops[shopAt], w.shops[0].Operators
	operatorAt := w.tape.Choose("affected operator", len(names))
	faults := &outside.Faults{}
	for _, group := range []outside.Group{outside.OperatorCalls, outside.Lookups, outside.Notifications} {
		all := outside.FaultsOf(group)
		for range 2 {
			if fault := draw(w, "fault of "+string(group), all...); !isLie(fault) {
				faults.Set(group, fault, draw(w, "rate", 60, 200, 450))
			}
		}
	}
	w.confined = faults
	w.servers[sick.host].Faults = faults
	w.operators[operatorHost(names[operatorAt])].Faults = faults
	w.planHealth(sick, length)
	if w.tape.Choose("unreadable profile", 2) == 1 {
		w.unreadable[sick.profile.ID] = w.drawWindow(length, time.Hour, 24*time.Hour, 3*24*time.Hour)
	}
	w.planOutage(names[operatorAt], length)
	w.affected = func(e *ledger.Entry) bool {
		return e.Merchant.ID == sick.profile.ID || e.Route.Operator == names[operatorAt]
	}
	for number := range 2 + w.tape.Choose("orders", 5) {
		w.drawOrder(number, length)
	}
	w.drawReads()
}
