package simulate

import (
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/shared/ledger"
)

const (
	// flaggedBound is the longest time from which a charge or an SMS is unknown until it is listed for a person, while
	// the sweep runs each minute.
	flaggedBound = 15*time.Minute + 3*time.Minute
	// pendingBound is the longest time from the last reservation of a payment until it is final, or listed: its
	// lifetime of 24 hours, and the hourly lookup.
	pendingBound = 25*time.Hour + 3*time.Minute
	// claimedBound is that time from an open claim of success: 48 hours, and the hourly lookup.
	claimedBound = 49*time.Hour + 3*time.Minute
)

// flagged checks that an entry that was open for longer than its bound was listed for a person (invariant 7). It checks
// this when the entry changes, and only in histories whose functions and tables have no faults.
func (c *checker) flagged(key string, before, after *ledger.Entry) {
	if c.world.affected == nil {
		return
	}
	since, bound := c.unknownSince[key], flaggedBound
	isOver := before.State == ledger.Unknown && after.State != ledger.Unknown
	if after.Kind == ledger.Payment {
		since, bound = before.ReservedAt, pendingBound
		if before.Claim.Status == ledger.Successful {
			since, bound = history.Latest(before.ReservedAt, before.Claim.At), claimedBound
		}
		isOver = before.State == ledger.Done && !before.StatusFinal() && after.StatusFinal()
	}
	if after.State == ledger.Unknown && before.State != ledger.Unknown {
		c.unknownSince[key] = time.Now()
	}
	if isOver && time.Since(since) > bound && c.listed[after.ID].Before(since) {
		c.fail(7, "%s was open for %s, and was not listed for a person", key, time.Since(since))
	}
}

// listedInTime checks that a charge or an SMS is listed within its bound (invariant 7).
func (c *checker) listedInTime(id string) {
	if c.world.affected == nil {
		return
	}
	for _, kind := range []ledger.Kind{ledger.Charge, ledger.SMS} {
		key := ledger.Key{Kind: kind, ID: id}.String()
		since, found := c.unknownSince[key]
		if found && c.listed[id].Before(since) && time.Since(since) > flaggedBound {
			c.fail(7, "%s was unknown for %s before it was listed for a person", key, time.Since(since))
		}
	}
}
