package plan

import (
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/proof/simulate/world"
	"mobilegateway/shared/ledger"
)

// crowdRarity is one in how many of these histories has a crowd: it takes as long as hundreds of others.
const crowdRarity = 1000

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
	if w.Tape.ChooseApart("a crowd of due entries", crowdRarity) == crowdRarity-1 {
		drawCrowd(w, sick, names[operatorAt], length)
	}
	w.Contention = [...]int{0, 2, 3}[w.Tape.ChooseApart("contention for the limits", 3)]
	w.Check.Confine(func(e *ledger.Entry) bool {
		return e.Merchant.ID == sick.Profile.ID || e.Route.Operator == names[operatorAt]
	})
	for number := range 2 + w.Tape.Choose("orders", 5) {
		w.Merchants.Draw(number, length)
	}
	w.Merchants.DrawReads()
}

// drawCrowd lets many entries of a merchant at an operator be due at once, while nothing can be done with them for an
// hour. The payers' SMS hang, or the profile cannot be read. Without the stream the sweep has all the work. The
// notifications of the crowd are more than a page of one shard, that of a payment of another merchant.
func drawCrowd(w *world.World, sick *fixture.Shop, operatorName string, length time.Duration) {
	const hangingSMS, notifications = 300, 1100
	w.Count("crowd of due entries")
	w.Kernel.MaxSteps *= 10
	broken := w.DrawWindow(length, time.Hour)
	w.Stream.Off = broken
	isSMS := w.Tape.Choose("due of the crowd", 2) == 1
	if isSMS {
		o := w.Operators.Model(operatorName)
		o.Outages = append(o.Outages, outside.Outage{
			Window: broken, Kind: outside.KindPayerSMS, Fault: outside.HangBefore,
		})
	} else {
		w.Unreadable[sick.Profile.ID] = broken
	}
	w.Kernel.At(broken.From, "crowd", func() {
		if isSMS {
			w.StoreCrowd(sick, operatorName, hangingSMS, -1, true)
			return
		}
		for _, o := range w.Merchants.Orders {
			if o.Function == deployment.Pay && o.Shop.Name != sick.Name {
				w.StoreCrowd(sick, operatorName, notifications, ledger.DueShard(o.Key()), false)
				return
			}
		}
	})
}
