package plan

import (
	"slices"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/proof/simulate/world"
)

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

// drawRates draws which faults a history has, and how often.
func drawRates(w *world.World) {
	rate := func(label string) int { return tape.Draw(w.Tape, label, 0, 0, 20, 100, 300) }
	w.Rates = history.Rates{
		Table: rate("rate of table faults") / 4, Lag: rate("rate of lag"), Crash: rate("rate of crashes") / 8,
		Freeze: rate("rate of freezes") / 10, ColdStart: rate("rate of cold starts"), Skew: rate("clock skew"),
		LostResponse: rate("rate of lost responses"), LateStream: rate("rate of late records"),
		DoubleStream: rate("rate of repeated records"), NoSweep: rate("rate of missing sweeps"),
	}
	liar := w.Tape.Choose("the operator lies", 20) == 19
	for _, group := range faultGroups {
		if w.Tape.Choose("has faults of "+string(group), 2) == 0 {
			continue
		}
		for _, fault := range outside.FaultsOf(group) {
			if isLie(fault) && !liar || w.Tape.Choose("has "+string(fault), 3) != 2 {
				continue
			}
			w.Faults.Set(group, fault, tape.Draw(w.Tape, "rate", 15, 60, 150))
		}
	}
}

// drawLength draws the length of the faults, and begins with it.
func drawLength(w *world.World) time.Duration {
	length := tape.Draw(w.Tape, "length of the faults", 10*time.Minute, 2*time.Hour, 30*time.Hour, 4*24*time.Hour)
	w.Begin(length)
	return length
}
