package check

import (
	"time"

	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

const isolated invariant = "9: Requests and payments of a merchant whose server, data and operator work succeed, " +
	"and its notifications are at most 2 minutes late, while other things fail"

// unaffectedBound: a notification of a merchant whose server, data and operator are well, while others are not.
const unaffectedBound = 2 * time.Minute

// isolation checks that merchants with which all is well notice nothing of others.
type isolation struct {
	*base
	// affected reports whether something that an entry depends on is broken; nil if everything may be.
	affected func(*ledger.Entry) bool
	// streamOff is the time in which the stream is off.
	streamOff *outside.Window
}

// responded checks that a request gets a response of the gateway's normal work, and that its order was stored.
func (c *isolation) responded(o *merchants.Order, made *merchants.Call) {
	if c.affected == nil {
		return
	}
	e, status := c.Entries.Of(o.Key().String()), made.Response.Status
	isStored := e != nil
	if !isStored {
		e = &ledger.Entry{}
		e.Merchant.ID, e.Route.Operator = o.Shop.Profile.ID, o.Wanted.Operator
	}
	if !c.affected(e) && (!isStored || !made.HasCome || status >= 500) {
		c.fail(isolated, "a request for %s of an unaffected merchant got %d, lost %v, stored %v", o.Key(), status,
			!made.HasCome, isStored)
	}
}

// atEnd checks that notifications came in time.
func (c *isolation) atEnd() {
	if c.affected == nil {
		return
	}
	bound := unaffectedBound
	if !c.streamOff.To.IsZero() {
		bound += ledger.FastLease // for so long the sweep leaves a notification to the relay
	}
	for e := range c.Entries.All() {
		if c.affected(e) {
			continue
		}
		if _, at, found := c.operators.FinalStatus(e); found && e.Kind == ledger.Payment &&
			e.FinalAt.Sub(at) > unaffectedBound {
			c.fail(isolated, "%s of an unaffected merchant became final %s late", e.Key, e.FinalAt.Sub(at))
		}
		for _, n := range e.Outbox.Delivered {
			if late := n.DeliveredAt.Sub(n.At); late > bound {
				c.fail(isolated, "%s: the notification of %s of an unaffected merchant is %s late", e.Key, n.Status,
					late)
			}
		}
		for _, n := range e.Outbox.Waiting {
			if late := time.Since(n.At); late > bound {
				c.fail(isolated, "%s: the notification of %s of an unaffected merchant is %s late, and is undelivered",
					e.Key, n.Status, late)
			}
		}
	}
}
