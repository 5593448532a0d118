package check

import (
	"net/http"
	"slices"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/operators"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

// callbacks checks that what operators report is kept.
type callbacks struct {
	*base
	accepted []outside.Callback  // that got 2xx since the last step
	released map[ledger.Key]bool // entries that were ever released
}

// CalledBack checks that the gateway never returns 404 for a correct callback, and 2xx for a forged one or for one that
// is not stored. An operator that denied a payment may call back for two payments under one key.
func (c *callbacks) CalledBack(callback outside.Callback, status int) {
	isForged, isAccepted := callback.Content == outside.CallbackForged, status >= 200 && status < 300
	if isForged && isAccepted {
		c.fail(confidentiality, "a forged callback for %s got %d", callback.Key, status)
	}
	if callback.Content == outside.NoFault && status == 404 && !c.operators.HasLied(callback.Key) &&
		!c.hasExpired(callback) {
		c.fail(keptReports, "a correct callback for %s got 404", callback.Key)
	}
	if isAccepted && !isForged {
		c.accepted = append(c.accepted, callback)
	}
}

// hasExpired reports whether a callback is about an SMS whose retention is over, or was when the callback came: there
// is nothing left that it could change. The key may have been reserved again meanwhile.
func (c *callbacks) hasExpired(callback outside.Callback) bool {
	if callback.Kind != outside.KindSMS || c.SMSRetention == 0 {
		return false
	}
	e := c.Entries.AtOperator(callback.Kind, callback.Key)
	return e == nil || e.PastRetention(time.Now().Add(history.MaxSkew)) ||
		e.CreatedAt.After(callback.SentAt.Add(-history.MaxSkew))
}

// PlatformCalledBack checks the status of the response to a platform's callback. The payment must have its outcome,
// as for the gateway's protocol, unless another account reported it: that changes nothing.
func (c *callbacks) PlatformCalledBack(r operators.Report, status int) {
	isOfOther := func(conflict ledger.Conflict) bool { return conflict.Reason == "amount" }
	switch {
	case r.IsForged && status/100 == 2:
		c.fail(confidentiality, "a forged callback of a platform got %d", status)
	case status == http.StatusNotFound && !r.IsForged && !r.IsOld:
		c.fail(keptReports, "a correct callback of a platform got %d", status)
	case status != http.StatusOK || r.IsReceipt || r.Payment == nil:
	case r.IsForeign:
		if slices.ContainsFunc(r.Payment.Conflicts, isOfOther) {
			c.fail(confidentiality, "%s: a callback of another account was applied", r.Payment.Key)
		}
	case r.IsUnread:
		c.unread(r.Payment)
	default:
		c.accepted = append(c.accepted, outside.Callback{
			Kind: outside.KindPayment, Key: r.Payment.Route.UpstreamKey, Status: string(r.Status),
		})
	}
}

// unread checks that the lookup of a pending payment is due soon after a callback to its own address that cannot be
// read.
func (c *callbacks) unread(e *ledger.Entry) {
	isPending := e.State == ledger.Done && !e.StatusFinal() && e.Poll.Attempts == 0
	isSmooth := c.Rates.Skew == 0 && c.Rates.Freeze == 0 && c.Rates.Table == 0
	isLate := e.Poll.At.After(time.Now().Add(time.Second))
	if isPending && isSmooth && isLate && time.Since(e.ReservedAt) >= 2*time.Second {
		c.fail(keptReports, "%s: an unread callback got 200, and the lookup is due only at %s", e.Key,
			e.Poll.At.Sub(history.Start))
	}
}

// followed checks the callbacks that got 2xx, once the changes of their step are read.
func (c *callbacks) followed() {
	for _, callback := range c.accepted {
		c.checkStored(callback)
	}
	c.accepted = c.accepted[:0]
}

// checkStored checks that a callback which got 2xx is stored. An SMS has the reported status, or a later one. A payment
// has it as its status, as a claim or as a conflict. One that was released needs no report of a failure. A callback
// that cannot be read leads to a lookup, unless the status is final (decision "unread-callbacks"), or the payment was
// released after it because its operator had denied it.
func (c *callbacks) checkStored(callback outside.Callback) {
	e := c.Entries.AtOperator(callback.Kind, callback.Key)
	switch {
	case callback.Kind == outside.KindSMS && c.SMSRetention != 0: // the key may be used again
	case e == nil:
		c.fail(keptReports, "the callback %s for %s got 2xx, and has no entry", callback.Status, callback.Key)
	case callback.Kind == outside.KindSMS && callback.Content == outside.CallbackGarbage: // counted, and no lookup
	case callback.Kind == outside.KindSMS:
		if progress[string(e.Status)] < progress[callback.Status] {
			c.fail(keptReports, "%s is %s, and its receipt %s got 2xx", e.Key, e.Status, callback.Status)
		}
	case callback.Content == outside.CallbackGarbage && (e.StatusFinal() || !e.DueAt.IsZero()): // a lookup, or none
	case callback.Content == outside.CallbackGarbage && e.State == ledger.Released && c.operators.HasLied(callback.Key):
	case !slices.ContainsFunc(reportedAs(e, callback), func(s ledger.Status) bool { return c.keepsReport(e, s) }):
		c.fail(keptReports, "%s is %s/%s, and its callback %s got 2xx", e.Key, e.State, e.Status, callback.Status)
	}
}

// reportedAs are the statuses that a callback may mean. The reason in a platform's callback of a failure decides which.
func reportedAs(e *ledger.Entry, callback outside.Callback) []ledger.Status {
	reported := ledger.Status(callback.Status)
	if _, isPlatform := operators.RowOf(e); isPlatform && reported == ledger.Failed {
		return []ledger.Status{ledger.Failed, ledger.Cancelled, ledger.Expired}
	}
	return []ledger.Status{reported}
}

// keepsReport reports whether a payment has kept a reported status. A callback that began while the payment was
// released may end after its success.
func (c *callbacks) keepsReport(e *ledger.Entry, reported ledger.Status) bool {
	return !reported.Final() || e.Status == reported || e.Claim.Status == reported ||
		c.released[e.Key] && reported != ledger.Successful ||
		slices.ContainsFunc(e.Conflicts, func(conflict ledger.Conflict) bool { return conflict.Status == reported })
}

// atEnd checks that an SMS has the furthest status of its stored receipts, and none that no receipt of its own account
// reported.
func (c *callbacks) atEnd(e *ledger.Entry) {
	p, key := c.operators.Platforms, e.Key.String()
	if p == nil || e.State != ledger.Done || e.Manual.Outcome != "" {
		return
	}
	for _, status := range p.Messages.Stored[key] {
		if progress[string(e.Status)] < progress[string(status)] {
			c.fail(keptReports, "%s is %s, and its receipt %s got 200", key, e.Status, status)
		}
	}
	row, _ := operators.RowOf(e)
	isReported := e.Status == ledger.MessageWaiting || slices.Contains(p.Messages.Own[key], e.Status)
	if row.Name == operators.SMSPlatform && !isReported {
		c.fail(confidentiality, "%s is %s, which no receipt of its account reported", key, e.Status)
	}
}

// progress orders the statuses of a notification.
var progress = map[string]int{
	"DeliveredToNetwork": 1, "DeliveredToTerminal": 2, "DeliveryImpossible": 2, "DeliveryUncertain": 2,
	"DeliveryNotificationNotSupported": 2,
}
