package simulate

import (
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/ledger"
)

// planHealth decides when a merchant's server is down.
func (w *World) planHealth(s *shop, length time.Duration) {
	server := w.servers[s.host]
	server.PlanHealth(history.Start, length, w.Tape)
	for _, broken := range server.Windows {
		w.BrokenUntil(broken.To)
	}
}

// drawConfined draws a history in which only one merchant and one operator have faults. All is well with the others, so
// their notifications are never late.
func (w *World) drawConfined(length time.Duration) {
	w.Count("history with faults of one merchant and one operator")
	shopAt := w.Tape.Choose("affected merchant", len(w.shops))
	sick, names := w.shops[shopAt], w.shops[0].Operators
	operatorAt := w.Tape.Choose("affected operator", len(names))
	faults := &outside.Faults{}
	for _, group := range []outside.Group{outside.OperatorCalls, outside.Lookups, outside.Notifications} {
		all := outside.FaultsOf(group)
		for range 2 {
			if fault := tape.Draw(w.Tape, "fault of "+string(group), all...); !isLie(fault) {
				faults.Set(group, fault, tape.Draw(w.Tape, "rate", 60, 200, 450))
			}
		}
	}
	w.Confined = faults
	w.servers[sick.host].Faults = faults
	w.operators[operatorHost(names[operatorAt])].Faults = faults
	w.planHealth(sick, length)
	if w.Tape.Choose("unreadable profile", 2) == 1 {
		w.unreadable[sick.profile.ID] = w.DrawWindow(length, time.Hour, 24*time.Hour, 3*24*time.Hour)
	}
	w.planOutage(names[operatorAt], length)
	w.affected = func(e *ledger.Entry) bool {
		return e.Merchant.ID == sick.profile.ID || e.Route.Operator == names[operatorAt]
	}
	for number := range 2 + w.Tape.Choose("orders", 5) {
		w.drawOrder(number, length)
	}
	w.drawReads()
}
