package check

import (
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// neverSent checks that the sweep takes no payment for one that was never sent before its time, counted from the last
// attempt. After a restore of the ledger that attempt may be known only by restore check.
func (c *effects) neverSent(t transition) {
	before, after := t.before, t.after
	if last := c.lastAttempt[t.key]; after.ReservedAt.After(last) {
		c.lastAttempt[t.key] = after.ReservedAt
	}
	ends := after.Kind == ledger.Payment && before.State == ledger.Unknown && after.State == ledger.Released &&
		t.writer.Is(deployment.Sweep)
	if !ends {
		return
	}
	row, age := operator.CapabilitiesOf(before), time.Since(history.Latest(before.ReservedAt, c.lastAttempt[t.key]))
	switch {
	case before.Request.Restored():
		c.fail(oneEffect, "%s was released, and its attempts are not known", t.key)
	case !row.Prepares && age < row.NeverSentAfter-history.MaxSkew:
		c.fail(oneEffect, "%s was released %s after its last attempt, and may still be applied", t.key, age)
	}
}
