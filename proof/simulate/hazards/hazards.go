// Package hazards has the kinds of trouble that a history can have, beside the faults with a rate.
package hazards

import (
	"cmp"
	"time"

	"mobilegateway/proof/simulate/world"
)

// hazard is one kind of trouble.
type hazard struct {
	name string
	plan func(w *world.World, length time.Duration)
	// rarity is one in how many histories it occurs, 0 for hazardRarity. A hazard whose histories take long is rarer.
	rarity int
	// isLater is true if the hazard was added later: whether it occurs leaves the other choices of a seed as they were.
	isLater bool
}

// hazards are all kinds. A history has about one of them. Their order matters, because a plan sees what those before it
// have set: planForgottenRefusals reads the retention of SMS, and planStoppedTimers sets the freezes again. A new kind
// comes at the end and is later, so that recorded seeds keep their choices.
var hazards = []hazard{
	{name: "a rotation of keys", plan: planRotations},
	{name: "a rotation of operators' tokens", plan: planTokenRotation},
	{name: "an unreadable secret", plan: planUnreadableSecret},
	{name: "a table that fails", plan: planFailingTable},
	{name: "a suspended merchant", plan: planSuspension, rarity: 60},
	{name: "a hanging operator", plan: planHangingOperator},
	{name: "the stream off", plan: planStreamOff},
	{name: "poison records", plan: planPoisonRecords},
	{name: "an undecodable item", plan: planUndecodableItem},
	{name: "deletion of expired items", plan: planDeletions},
	{name: "an engineer at work", plan: planEarlyEngineer},
	{name: "a newer version", plan: planNewerVersion},
	{name: "denied addresses", plan: func(w *world.World, _ time.Duration) { w.Merchants.HasDeniedAddresses = true }},
	{name: "sweeps started twice", plan: func(w *world.World, _ time.Duration) { w.Rates.DoubleSweep = 200 }},
	{name: "a short retention", plan: planShortRetention},
	{name: "crashes at a few calls", plan: planCrashProneCalls},
	{name: "changes by an engineer", plan: planChanges, rarity: 60},
	{name: "crashes at the table of limits", plan: planLimitCrashes, rarity: 24},
	{name: "short-lived tokens", plan: planShortLivedTokens},
	{name: "crashes of gatewayctl", plan: planToolCrashes, rarity: 40},
	{name: "an engineer who sends at once", plan: planSends, rarity: 24},
	{name: "the sweep off", plan: planSweepOff, rarity: 48, isLater: true},
	{name: "operators that forget refusals", plan: planForgottenRefusals, rarity: 24, isLater: true},
	{name: "timers that stop in a freeze", plan: planStoppedTimers, rarity: 24, isLater: true},
	{name: "lookups of another payment", plan: planOtherLookups, rarity: 24, isLater: true},
	{name: "a busy merchant", plan: planBusyMerchant, rarity: 40, isLater: true},
	{name: "a new address", plan: planNewAddress, rarity: 40, isLater: true},
	{name: "notifications without an outcome", plan: planLostNotifications, rarity: 160, isLater: true},
	{name: "few processes", plan: planFewProcesses, rarity: 24, isLater: true},
	{name: "a revoked secret", plan: planRevokedSecret, rarity: 40, isLater: true},
	{name: "a removed account", plan: planRemovedAccount, rarity: 24, isLater: true},
	{name: "unreadable callbacks of denied payments", plan: planDeniedPayments, rarity: 48, isLater: true},
	{name: "partitions of a merchant's days", plan: planDayShards, rarity: 24, isLater: true},
	{name: "circuits", plan: planCircuits, rarity: 200, isLater: true},
}

// hazardRarity is one in how many histories most hazards occur.
const hazardRarity = 12

// Draw draws the hazards of a history.
func Draw(w *world.World, length time.Duration) {
	for _, h := range hazards {
		rarity, choose := cmp.Or(h.rarity, hazardRarity), w.Tape.Choose
		if h.isLater {
			choose = w.Tape.ChooseApart
		}
		if choose("has "+h.name, rarity) == rarity-1 {
			w.Count("hazard: " + h.name)
			h.plan(w, length)
		}
	}
}
