package hazards

import (
	"strings"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/proof/simulate/world"
	"mobilegateway/shared/circuit"
)

// The operator of a history with circuits, and a country whose charges and SMS it has too.
const (
	circuitOperator = "sandbox"
	circuitCountry  = "CI"
)

// The orders of a history with circuits: a crowd while the platform fails, and bursts then and later.
const (
	crowdStep     = 2 * time.Second // between two groups of the crowd
	crowdGroup    = 5               // orders at the same time
	burst         = 3
	burstInterval = 7 * time.Second
	firstOfCrowd  = 1000 // the number of its first order
)

// laterBursts are the times of bursts after the end of the failure.
var laterBursts = []time.Duration{
	time.Second, 5 * time.Second, 10 * time.Second, 25 * time.Second, 35 * time.Second, 40 * time.Second,
	45 * time.Second, 8 * time.Minute, 8*time.Minute + 4*time.Second, time.Hour,
}

// planCircuits switches the circuits on. A platform fails in one way, while a crowd of orders comes to one account.
func planCircuits(w *world.World, length time.Duration) {
	w.AccountConcurrency = tape.Draw(w.Tape, "concurrency of the account", 1000, 20, 5)
	w.Rates.Freeze, w.TimersStop = 0, false // a frozen call seems slow
	if w.Tape.Choose("clocks differ", 2) == 1 {
		w.Rates.Skew = max(w.Rates.Skew, 1)
	}
	function := tape.Draw(w.Tape, "kind of order of the crowd", deployment.Charge, deployment.Pay, deployment.SMS)
	begin := w.DrawStart(length).Add(time.Minute)
	end := begin.Add(tape.Draw(w.Tape, "time without the platform", 2*time.Minute, 20*time.Second, 24*time.Hour))
	w.BrokenUntil(end.Add(time.Minute))
	o := w.Operators.Model(circuitOperator)
	o.Outages = append(o.Outages, outside.Outage{
		Window: outside.Window{From: begin, To: end},
		Fault: tape.Draw(w.Tape, "failure of the platform", outside.ServerErrorBefore, outside.HangBefore,
			outside.ConnectRefused, outside.SlowAfter, outside.HangAfter, outside.FinalRefusal, outside.Throttled,
			outside.NoFault),
		SparedOf: tape.Draw(w.Tape, "one of so many calls is served", 0, 0, 10),
	})
	planCircuitOrders(w, function, begin, end)
	planCircuitDamage(w, begin)
	if w.Tape.Choose("crashes beside circuits", 3) == 2 {
		w.CrashOften(func(name, call string) bool {
			isAffected := strings.HasSuffix(call, " "+fixture.LimitTable) || strings.HasPrefix(call, "http")
			return isAffected && name == function
		})
	}
}

// planCircuitOrders schedules the orders.
func planCircuitOrders(w *world.World, function string, begin, end time.Time) {
	s := *w.Merchants.Shops[0]
	s.Operators, s.Countries = []string{circuitOperator}, []string{circuitCountry}
	number := firstOfCrowd
	schedule := func(at time.Time, count int) {
		for range count {
			order := w.Merchants.Add(&s, function, number)
			number = order.Number + 1
			order.Start = at
			w.Merchants.Schedule(order, "order of a crowd")
		}
	}
	groups := 4 + w.Tape.Choose("groups of the crowd", 4)
	for group := range groups {
		schedule(begin.Add(time.Duration(group)*crowdStep), crowdGroup)
	}
	for n := range 5 + w.Tape.Choose("bursts", 6) {
		schedule(begin.Add(time.Duration(groups)*crowdStep+time.Duration(n)*burstInterval), burst)
	}
	for _, wait := range laterBursts {
		schedule(end.Add(wait), burst)
	}
}

// planCircuitDamage lets the stored states be lost, torn, or of another time or version.
func planCircuitDamage(w *world.World, begin time.Time) {
	account := circuitOperator + "/" + fixture.FirstAccount
	opened := func(at time.Duration) func(string) string {
		return func(string) string {
			state := circuit.OpenedByPerson(time.Now().Add(at), 10*time.Second)
			return state.Encode()
		}
	}
	var noDamage func(string) string
	damage := tape.Draw(w.Tape, "damage of the circuits", noDamage, noDamage,
		func(string) string { return "" },                      // lost
		func(form string) string { return form[:len(form)/2] }, // torn
		opened(time.Hour),                                      // from the future
		opened(20*time.Second),                                 // by a clock that is ahead
		func(string) string { return "2 a state of a newer version" },
		func(form string) string { return strings.TrimSuffix(form, ".") }, // without its end
	)
	if damage == nil {
		return
	}
	for n := range 4 {
		seconds := 25*n + w.Tape.Choose("seconds to the damage", 25)
		at := begin.Add(time.Duration(seconds) * time.Second)
		w.Kernel.At(at, "damage of the circuits", func() {
			w.Count("circuit: damaged")
			w.DamageCircuits(account, damage)
		})
	}
}
