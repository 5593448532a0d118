package check

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/shared/ledger"
)

const ownResends invariant = "18: A merchant's resend queues one of its own notifications, under its `webhook-id`, " +
	"and at most 12 of a transaction. It does so only while none other waits and no later status was delivered. " +
	"Each 202 has its write, and a refusal is true"

// mostResends bounds the merchant's resends of one transaction.
const mostResends = 12

// resends checks what merchants have sent again.
type resends struct {
	*base
	queued map[string][]queuedResend // by the stored key of the entry
}

// queuedResend is a write of the resend function.
type queuedResend struct {
	webhookID string
	step      int
	at        time.Time
}

// isActive reports whether a notification still has attempts before it.
func isActive(n ledger.Notification) bool { return n.DeadReason == "" }

// changed checks a write of the resend function: it queues one delivered notification or dead letter.
func (c *resends) changed(t transition) {
	if !t.writer.Is(deployment.Resend) {
		return
	}
	before, after := t.before.Outbox, t.after.Outbox
	if slices.ContainsFunc(before.Waiting, isActive) {
		c.fail(ownResends, "%s: a resend was queued while a notification waited", t.key)
	}
	queued := slices.DeleteFunc(slices.Clone(after.Waiting), func(n ledger.Notification) bool { return !isActive(n) })
	first := ledger.Notification{}
	for _, n := range slices.Concat(before.Delivered, before.Waiting) {
		if len(queued) > 0 && n.ID == queued[0].ID && n.Status == queued[0].Status {
			first = n
		}
	}
	if first.ID == "" {
		c.fail(ownResends, "%s: a resend queued %d notifications, and no known one", t.key, len(queued))
		return
	}
	for _, n := range before.Delivered {
		if progress[string(n.Status)] > progress[string(first.Status)] {
			c.fail(ownResends, "%s: a resend of %s was queued, and %s was delivered before", t.key, first.Status,
				n.Status)
		}
	}
	all := append(c.queued[t.key], queuedResend{first.ID, c.Kernel.Steps(), time.Now()})
	if c.queued[t.key] = all; len(all) > mostResends {
		c.fail(ownResends, "%s: %d resends", t.key, len(all))
	}
}

// HasResent implements merchants.Observer. A write at the end of an entry's retention is not checked: by another clock
// the entry is over.
func (c *resends) HasResent(o *merchants.Order, made merchants.Resend) {
	r, key := made.Response, o.Key().String()
	e := c.Entries.Of(key)
	isKept := e != nil && !e.PastRetention(time.Now().Add(history.MaxSkew))
	switch {
	case r.Status < 300 && made.Refusal != "":
		c.fail(confidentiality, "a resend got %d, and its token or merchant was %s", r.Status, made.Refusal)
	case r.Status == http.StatusAccepted && !strings.Contains(r.Body, made.WebhookID):
		c.fail(ownResends, "%s: the response to a resend of %s is %s", key, made.WebhookID, r.Body)
	case r.Status == http.StatusAccepted && isKept && !slices.ContainsFunc(c.queued[key], func(q queuedResend) bool {
		return q.webhookID == made.WebhookID && q.step >= made.Began
	}):
		c.fail(ownResends, "%s: a resend of %s got 202, and nothing was queued", key, made.WebhookID)
	case r.Status == http.StatusConflict && r.Reason == string(ledger.ResendLaterStatus) && e != nil &&
		len(e.Outbox.Delivered)+len(e.Outbox.Waiting) < 2:
		c.fail(ownResends, "%s: a resend of %s is refused for a later status, and there is none", key, made.WebhookID)
	}
}

// hasResentSince reports whether a resend of an entry was queued since a time.
func (c *resends) hasResentSince(key string, since time.Time) bool {
	return slices.ContainsFunc(c.queued[key], func(q queuedResend) bool { return q.at.After(since) })
}
