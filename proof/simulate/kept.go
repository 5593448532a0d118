package simulate

import (
	"slices"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

// kept checks that no notification disappears (invariant 8). One of the outbox, a dead letter too, stays there until it
// is delivered. A delivered one stays known, or is in the outbox again after a replay.
func (c *checker) kept(key string, before, after *ledger.Entry) {
	for _, n := range slices.Concat(before.Outbox.Delivered, before.Outbox.Waiting) {
		hasID := func(other ledger.Notification) bool { return other.ID == n.ID }
		if !slices.ContainsFunc(after.Outbox.Waiting, hasID) && !slices.ContainsFunc(after.Outbox.Delivered, hasID) {
			c.fail(8, "%s: the notification of %s (dead %q) disappeared", key, n.Status, n.DeadReason)
		}
	}
}

// checkAccepted checks the callbacks that got 2xx, once the changes of their step are read.
func (c *checker) checkAccepted() {
	for _, callback := range c.accepted {
		c.checkStored(callback)
	}
	c.accepted = c.accepted[:0]
}

// checkStored checks that a callback which got 2xx is stored (invariant 8). An SMS has the reported status, or a later
// one. A payment has it as its status, as a claim or as a conflict. One that was released needs no report of a failure.
// A callback that cannot be read leads to a lookup, unless the status is final (decision "unread-callbacks").
func (c *checker) checkStored(callback outside.Callback) {
	e := c.entries[c.byUpstream[callback.Kind+" "+callback.Key]]
	isReused := callback.Kind == outside.KindSMS && c.world.smsRetention != 0
	switch {
	case isReused || callback.Content == outside.CallbackForged:
	case e == nil:
		c.fail(8, "the callback %s for %s got 2xx, and has no entry", callback.Status, callback.Key)
	case callback.Kind == outside.KindSMS && callback.Content == outside.CallbackGarbage: // counted, and no lookup
	case callback.Kind == outside.KindSMS:
		if progress[string(e.Status)] < progress[callback.Status] {
			c.fail(8, "%s is %s, and its receipt %s got 2xx", e.Key, e.Status, callback.Status)
		}
	case callback.Content == outside.CallbackGarbage && (e.StatusFinal() || !e.DueAt.IsZero()): // a lookup, or none
	case !slices.ContainsFunc(reportedAs(e, callback), func(s ledger.Status) bool { return c.keepsReport(e, s) }):
		c.fail(8, "%s is %s/%s, and its callback %s got 2xx", e.Key, e.State, e.Status, callback.Status)
	}
}

// reportedAs are the statuses that a callback may mean. The reason in a platform's callback of a failure decides which.
func reportedAs(e *ledger.Entry, callback outside.Callback) []ledger.Status {
	reported := ledger.Status(callback.Status)
	if _, isPlatform := platformRowOf(e); isPlatform && reported == ledger.Failed {
		return []ledger.Status{ledger.Failed, ledger.Cancelled, ledger.Expired}
	}
	return []ledger.Status{reported}
}

// keepsReport reports whether a payment has kept a reported status. A callback that began while the payment was
// released may end after its success.
func (c *checker) keepsReport(e *ledger.Entry, reported ledger.Status) bool {
	return !reported.Final() || e.Status == reported || e.Claim.Status == reported ||
		c.released[e.Key] && reported != ledger.Successful ||
		slices.ContainsFunc(e.Conflicts, func(conflict ledger.Conflict) bool { return conflict.Status == reported })
}

// paymentLifetime is how long a payment may stay pending before the gateway may end it as expired.
const paymentLifetime = 24 * time.Hour

// expired checks that a payment expires only after its lifetime, or when its operator has ended it so (invariant 1).
func (c *checker) expired(key string, before, after *ledger.Entry) {
	if after.Status != ledger.Expired || before.Status == ledger.Expired {
		return
	}
	row, isPlatform := platformRowOf(after)
	if isPlatform && row.expires {
		return
	}
	status, at, found := c.world.operators[operatorHost(after.Route.Operator)].FinalStatus(after.Route.UpstreamKey)
	isEnded := found && status == string(ledger.Expired) && !at.After(time.Now())
	if age := time.Since(after.ReservedAt); age < paymentLifetime-history.MaxSkew && !isEnded {
		c.fail(1, "%s expired %s after its reservation, and its operator may still end it", key, age)
	}
}
