package simulate

import (
	"bytes"
	"time"

	"mobilegateway/internal/simulate/outside"
	"mobilegateway/shared/ledger"
)

// checkReceipt checks a notification that reached a merchant's server: signed, and not before a later status
// (invariants 4 and 5). A replay may repeat an earlier status.
func (c *checker) checkReceipt(s *shop, receipt outside.Receipt) {
	if !receipt.Signed {
		c.fail(5, "a notification for %s is not signed as it should", receipt.Order)
	}
	name := s.Name + " " + receipt.Order
	if progress[receipt.Status] < c.furthest[name] && !c.wasReplayed(s, receipt.Order, receipt.At) {
		c.fail(4, "%s: %s came after a later status", receipt.Order, receipt.Status)
	}
	c.furthest[name] = max(c.furthest[name], progress[receipt.Status])
}

// wasReplayed reports whether a notification of a merchant's order was replayed before a time, or the order's key was
// used again after its entry had expired.
func (c *checker) wasReplayed(s *shop, order string, at time.Time) bool {
	for _, key := range c.keys {
		e := c.entries[key]
		if e == nil || e.MerchantID != s.profile.ID || e.CallbackData != order && e.ID != order {
			continue
		}
		for _, replay := range e.Replays {
			if !replay.At.After(at.Add(maxSkew)) {
				return true
			}
		}
		if c.world.smsRetention != 0 && e.Kind == ledger.SMS {
			return true
		}
	}
	return false
}

// checkUnaffected checks that notifications of merchants with which all is well came in time (invariant 9).
func (c *checker) checkUnaffected() {
	if c.world.affected == nil {
		return
	}
	bound := unaffectedBound
	if !c.world.streamOff.to.IsZero() {
		bound += ledger.FastLease // for so long the sweep leaves a notification to the relay
	}
	for _, key := range c.keys {
		e := c.entries[key]
		if e == nil || c.world.affected(e) {
			continue
		}
		for _, n := range e.Delivered {
			if late := n.DeliveredAt.Sub(n.At); late > bound {
				c.fail(9, "%s: the notification of %s of an unaffected merchant is %s late", key, n.Status, late)
			}
		}
		for _, n := range e.Outbox {
			if late := time.Since(n.At); late > bound {
				c.fail(9, "%s: the notification of %s of an unaffected merchant is %s late, and is not delivered", key,
					n.Status, late)
			}
		}
	}
}

// checkLogLine checks that a log line has no secret (invariant 5), and follows the list for a person.
func (w *World) checkLogLine(i *instance, line []byte) {
	for _, secret := range w.checker.secrets {
		if bytes.Contains(line, secret) {
			w.fail("invariant 5: %s logged %q: %s", i.Name, secret, line)
		}
	}
	if w.hasStory {
		_, text, _ := bytes.Cut(line, []byte(`},"`)) // without the declarations of its metrics
		w.logf("%s log: %s", i.Name, bytes.TrimSpace(text))
	}
	if bytes.Contains(line, []byte(`"StaleUnknownOutcomes":1`)) {
		w.checker.markListed(line)
	}
}
