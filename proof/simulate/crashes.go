package simulate

import (
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"time"

	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
)

// crashGroups is the number of groups into which the outside calls of all functions are divided.
const crashGroups = 16

// crashProne are calls around which instances crash often, so that each call is crashed also where it is rare. The zero
// value has none.
type crashProne struct {
	rate    int // per mille
	matches func(function, call string) bool
}

// crashRate is the rate of crashes around a call of a function, per mille.
func (w *World) crashRate(function, call string) int {
	if w.crashProne.matches == nil || !w.crashProne.matches(function, call) {
		return w.Rates.Crash
	}
	return max(w.Rates.Crash, w.crashProne.rate)
}

// crashOften makes crashes frequent around some calls.
func (w *World) crashOften(matches func(function, call string) bool) {
	w.crashProne = crashProne{tape.Draw(w.Tape, "rate of crashes at these calls", 100, 200, 400), matches}
}

// planCrashProneCalls makes crashes frequent around a sixteenth of all calls.
func (w *World) planCrashProneCalls(time.Duration) {
	group := uint32(w.Tape.Choose("group of calls that crash", crashGroups)) //nolint:gosec // below crashGroups
	w.crashOften(func(function, call string) bool {
		hash := fnv.New32a()
		_, _ = io.WriteString(hash, function+" "+call)
		return hash.Sum32()%crashGroups == group
	})
}

// extraOrders is the first number of the orders that a hazard adds.
const extraOrders = 10

// planLimitCrashes makes crashes frequent around the table of limits, while payments of the merchant with a limit fail,
// also late, and its rate is limited.
func (w *World) planLimitCrashes(length time.Duration) {
	w.crashOften(func(_, call string) bool { return strings.HasSuffix(call, " "+limitTable) })
	w.Faults.Set(outside.OperatorCalls, outside.Unavailable, 100)
	w.Faults.Set(outside.OperatorCalls, outside.HangBefore, 100)
	w.Faults.Set(outside.Payers, outside.PayerFails, 400)
	w.Faults.Set(outside.Payers, outside.PayerExpires, 200)
	w.Faults.Set(outside.CallbackTimes, outside.CallbackNever, 400)
	limited := w.limitedShop()
	for number := range 3 {
		w.drawOrderOfShop(limited, functionPay, extraOrders+number, length)
	}
	w.drawOrderOfShop(limited, functionSMS, extraOrders, length)
	if w.Tape.Choose("and its rate is limited", 4) == 3 {
		w.engineerAt(w.DrawStart(length), "rate limit", func(i *instance) { w.limitRequests(limited, i) })
	}
}

// planShortLivedTokens lets merchants use short-lived tokens. Crashes may be frequent around the key ring of tokens.
func (w *World) planShortLivedTokens(length time.Duration) {
	if w.Tape.Choose("crashes around tokens", 2) == 1 {
		w.crashOften(func(function, call string) bool {
			return function == functionToken || strings.HasSuffix(call, " "+tokenSecret)
		})
	}
	for range 1 + w.Tape.Choose("short-lived tokens", 3) {
		s := tape.Draw(w.Tape, "shop", w.shops...)
		w.Kernel.At(w.DrawStart(length), "token request", func() { w.requestToken(s) })
	}
}

// planToolCrashes lets the engineer work while faults happen, and crash often. Outcomes are unknown, and notifications
// are dead.
func (w *World) planToolCrashes(length time.Duration) {
	w.crashOften(func(function, _ string) bool { return function == functionEngineer })
	w.Faults.Set(outside.OperatorCalls, outside.HangBefore, 150)
	w.Faults.Set(outside.OperatorCalls, outside.HangAfter, 150)
	w.Faults.Set(outside.Notifications, outside.EndpointGone, 200)
	w.Faults.Set(outside.Payers, outside.PayerNever, 400)
	for number, function := range []string{functionCharge, functionPay, functionPay} {
		w.drawOrderOfShop(w.limitedShop(), function, extraOrders+number, length)
	}
	w.planEarlyEngineer(length)
	w.planChanges(length)
}

// limitedShop is the merchant with a daily amount.
func (w *World) limitedShop() *shop {
	return w.shops[slices.IndexFunc(w.shops, func(s *shop) bool { return s.limited })]
}
