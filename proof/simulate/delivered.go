package simulate

import (
	"bytes"
	"slices"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

// checkReceipt checks a notification that reached a merchant's server: signed, and not before a later status
// (invariants 4 and 5). A replay may repeat an earlier status.
func (c *checker) checkReceipt(s *shop, receipt outside.Receipt) {
	if !receipt.Signed {
		c.fail(5, "the notification of %s for %q (webhook-id %s) is not signed as it should", receipt.Status,
			receipt.Order, receipt.ID)
	}
	c.checkID(s, receipt)
	c.checkAddress(s, receipt)
	c.checkBody(s, receipt.Body)
	c.learnFrom(s, receipt)
	name := s.Name + " " + receipt.Order
	last := c.furthest[name]
	rank := progress[receipt.Status]
	if rank < last.rank && !c.wasReplayed(s, receipt.Order, last.at) {
		c.fail(4, "%s: %s came after a later status", receipt.Order, receipt.Status)
	}
	c.furthest[name] = reached{rank, receipt.At}
}

// checkID checks that a notification has the webhook-id of its entry's notification (invariant 8). The entry of an SMS
// may have expired.
func (c *checker) checkID(s *shop, receipt outside.Receipt) {
	isIt := func(n ledger.Notification) bool {
		return n.ID == receipt.ID && (receipt.Status == "" || string(n.Status) == receipt.Status)
	}
	for _, key := range c.keys {
		if e := c.entries[key]; e == nil || e.Merchant.ID == s.profile.ID &&
			(slices.ContainsFunc(e.Outbox.Waiting, isIt) || slices.ContainsFunc(e.Outbox.Delivered, isIt)) {
			return
		}
	}
	c.fail(8, "the notification of %s for %q has the webhook-id %q, which no entry of %s has", receipt.Status,
		receipt.Order, receipt.ID, s.Name)
}

// reached is the progress of a status that a merchant received last.
type reached struct {
	rank int
	at   time.Time
}

// wasReplayed reports whether a notification of a merchant's order was replayed since a time, or the order's key was
// used again since then, because its entry had expired.
func (c *checker) wasReplayed(s *shop, order string, since time.Time) bool {
	since = since.Add(-history.MaxSkew)
	for e := range c.all() {
		isIt := e.Merchant.ID == s.profile.ID && (e.Request.CallbackData == order || e.ID == order)
		isReused := c.world.smsRetention != 0 && e.Kind == ledger.SMS && e.CreatedAt.After(since)
		if isIt && (isReused || lastReplay(e).After(since)) {
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
	if !c.world.streamOff.To.IsZero() {
		bound += ledger.FastLease // for so long the sweep leaves a notification to the relay
	}
	for e := range c.all() {
		if c.world.affected(e) {
			continue
		}
		if _, at, found := c.world.operators[operatorHost(e.Route.Operator)].FinalStatus(e.Route.UpstreamKey); found &&
			e.Kind == ledger.Payment && e.FinalAt.Sub(at) > unaffectedBound {
			c.fail(9, "%s of an unaffected merchant became final %s late", e.Key, e.FinalAt.Sub(at))
		}
		for _, n := range e.Outbox.Delivered {
			if late := n.DeliveredAt.Sub(n.At); late > bound {
				c.fail(9, "%s: the notification of %s of an unaffected merchant is %s late", e.Key, n.Status, late)
			}
		}
		for _, n := range e.Outbox.Waiting {
			if late := time.Since(n.At); late > bound {
				c.fail(9, "%s: the notification of %s of an unaffected merchant is %s late, and is not delivered",
					e.Key, n.Status, late)
			}
		}
	}
}

// unaffectedResponse checks that a request of a merchant with which all is well gets a response of the gateway's normal
// work (invariant 9).
func (c *checker) unaffectedResponse(o *order, lost bool, r outside.Response) {
	if c.world.affected == nil {
		return
	}
	if e := c.entries[o.key().String()]; e != nil && !c.world.affected(e) && (lost || r.Status >= 500) {
		c.fail(9, "a request for %s of an unaffected merchant got %d, lost %v", e.Key, r.Status, lost)
	}
}

// checkLogLine checks that a log line has no secret (invariant 5), and follows the list for a person.
func (w *World) checkLogLine(i *instance, line []byte) {
	for _, hidden := range [][][]byte{w.checker.secrets, w.checker.numbers} {
		for _, text := range hidden {
			if bytes.Contains(line, text) {
				w.Fail("invariant 5: %s logged %q: %s", i.Name, text, line)
			}
		}
	}
	w.checkAlarms(i, line)
	if w.HasStory {
		_, text, _ := bytes.Cut(line, []byte(`},"`)) // without the declarations of its metrics
		w.Logf("%s log: %s", i.Name, bytes.TrimSpace(text))
	}
	if bytes.Contains(line, []byte(`"StaleUnknownOutcomes":1`)) {
		w.checker.markListed(line)
	}
}
