package hazards

import (
	"hash/fnv"
	"io"
	"strings"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/proof/simulate/world"
)

// crashGroups is the number of groups into which the outside calls of all functions are divided.
const crashGroups = 16

// planCrashProneCalls makes crashes frequent around a sixteenth of all calls.
func planCrashProneCalls(w *world.World, _ time.Duration) {
	group := uint32(w.Tape.Choose("group of calls that crash", crashGroups)) //nolint:gosec // below crashGroups
	w.CrashOften(func(function, call string) bool {
		hash := fnv.New32a()
		_, _ = io.WriteString(hash, function+" "+call)
		return hash.Sum32()%crashGroups == group
	})
}

// planLimitCrashes makes crashes frequent around the table of limits, while payments of the merchant with a limit fail,
// also late, and its rate is limited.
func planLimitCrashes(w *world.World, length time.Duration) {
	w.CrashOften(func(_, call string) bool { return strings.HasSuffix(call, " "+fixture.LimitTable) })
	w.Faults.Set(outside.OperatorCalls, outside.Unavailable, 100)
	w.Faults.Set(outside.OperatorCalls, outside.HangBefore, 100)
	w.Faults.Set(outside.Payers, outside.PayerFails, 400)
	w.Faults.Set(outside.Payers, outside.PayerExpires, 200)
	w.Faults.Set(outside.CallbackTimes, outside.CallbackNever, 400)
	limited := w.Merchants.Limited()
	for number := range 3 {
		w.Merchants.DrawOfShop(limited, deployment.Pay, extraOrders+number, length)
	}
	w.Merchants.DrawOfShop(limited, deployment.SMS, extraOrders, length)
	if w.Tape.Choose("and its rate is limited", 4) == 3 {
		w.Engineers.At(w.DrawStart(length), "rate limit", func(i *deployment.Instance) {
			w.Engineers.LimitRequests(limited, i)
		})
	}
}

// planLostNotifications lets functions crash around each notification, so that no attempt has a recorded outcome.
func planLostNotifications(w *world.World, length time.Duration) {
	w.CrashAlways(func(_, call string) bool { return call == deployment.CallNotification })
	w.Merchants.DrawOfShop(w.Merchants.Shops[0], deployment.Pay, extraOrders, length)
}

// planShortLivedTokens lets merchants use short-lived tokens. Crashes may be frequent around the key ring of tokens.
func planShortLivedTokens(w *world.World, length time.Duration) {
	if w.Tape.Choose("crashes around tokens", 2) == 1 {
		w.CrashOften(func(function, call string) bool {
			return function == deployment.Token || strings.HasSuffix(call, " "+fixture.TokenSecret)
		})
	}
	for range 1 + w.Tape.Choose("short-lived tokens", 3) {
		s := tape.Draw(w.Tape, "shop", w.Merchants.Shops...)
		w.Kernel.At(w.DrawStart(length), "token request", func() { w.Merchants.RequestToken(s) })
	}
}

// planToolCrashes lets the engineer work while faults happen, and crash often. Outcomes are unknown, and notifications
// are dead.
func planToolCrashes(w *world.World, length time.Duration) {
	w.CrashOften(func(function, _ string) bool { return function == deployment.Engineer })
	w.Faults.Set(outside.OperatorCalls, outside.HangBefore, 150)
	w.Faults.Set(outside.OperatorCalls, outside.HangAfter, 150)
	w.Faults.Set(outside.Notifications, outside.EndpointGone, 200)
	w.Faults.Set(outside.Payers, outside.PayerNever, 400)
	for number, function := range []string{deployment.Charge, deployment.Pay, deployment.Pay} {
		w.Merchants.DrawOfShop(w.Merchants.Limited(), function, extraOrders+number, length)
	}
	planEarlyEngineer(w, length)
	w.Engineers.DrawChanges(length)
}
