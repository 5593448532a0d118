package plan

import (
	"time"

	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/proof/simulate/world"
	"mobilegateway/shared/ledger"
)

// drawConfined draws a history in which only one merchant and one operator have faults. All is well with the others, so
// their notifications are never late.
func drawConfined(w *world.World, length time.Duration) {
	w.Count("history with faults of one merchant and one operator")
	shopAt := w.Tape.Choose("affected merchant", len(w.Merchants.Shops))
	sick, names := w.Merchants.Shops[shopAt], w.Operators.Names
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
	w.Merchants.Servers[sick.Host].Faults = faults
	w.Operators.Model(names[operatorAt]).Faults = faults
	w.Merchants.PlanHealth(sick, length)
	if w.Tape.Choose("unreadable profile", 2) == 1 {
		w.Unreadable[sick.Profile.ID] = w.DrawWindow(length, time.Hour, 24*time.Hour, 3*24*time.Hour)
	}
	w.Operators.DrawOutage(names[operatorAt], length)
	w.Check.Confine(func(e *ledger.Entry) bool {
		return e.Merchant.ID == sick.Profile.ID || e.Route.Operator == names[operatorAt]
	})
	for number := range 2 + w.Tape.Choose("orders", 5) {
		w.Merchants.Draw(number, length)
	}
	w.Merchants.DrawReads()
}
