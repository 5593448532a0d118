package check

import (
	"bytes"
	"net/url"
	"slices"
	"time"

	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/mirror"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

const keptReports invariant = "8: Each new status has its notification, and so has a charge whose outcome became " +
	"known late, once. It is delivered, which the server has acknowledged, or is a dead letter with a reason after " +
	"its whole schedule, or after 50 attempts in a row without an outcome. The waits between attempts are spread. It " +
	"has its entry's `webhook-id`, and a replay goes to the merchant's present address. A callback that got 2xx is " +
	"reflected in the entry, and a correct one never gets 404. A poison record does not fail its batch. Without " +
	"faults the payer's SMS is sent"

const oneBody invariant = "15: No merchant gets two notifications with different bodies under one `webhook-id`"

const (
	// deliveryBound: a notification is delivered, or is a dead letter. The longest wait of the schedule is 24 hours
	// with a fifth of jitter; two notifications of one entry follow each other.
	deliveryBound = 31 * time.Hour
	// deadLetterAge is the least age of a notification whose schedule of about 76 hours has ended: a fifth of jitter
	// less.
	deadLetterAge = 60 * time.Hour
	// mostUnrecorded bounds the attempts in a row that have no recorded outcome.
	mostUnrecorded = 50
	// mostUnmoved bounds the retries of a history that come after exactly the wait of the schedule. One of 2,000 waits
	// of 5 seconds does so by chance, and fewer of the longer ones.
	mostUnmoved = 2
	// responseThrottled is the response whose Retry-After replaces a shorter wait.
	responseThrottled = 429
	// payerSMSBound is the longest time without faults after which the payer's SMS may be given up. A lease and a wait
	// of its retries come before the next attempt, which may find that it is too late.
	payerSMSBound = 3 * time.Hour
)

// retryWaits are the waits after each failed attempt at a notification (decision "notifications"). Each is moved by up
// to a fifth, so that attempts that failed together are not repeated together.
var retryWaits = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour,
	20 * time.Hour, 24 * time.Hour,
}

// notifications checks that no notification is lost.
type notifications struct {
	*base
	unmoved int               // retries that come after exactly the wait of the schedule
	bodies  map[string][]byte // the first body by the merchant's name and the webhook-id
}

// hasID returns a function that reports whether a notification has an id.
func hasID(id string) func(ledger.Notification) bool {
	return func(n ledger.Notification) bool { return n.ID == id }
}

// changed checks a change of an entry: a new status has its notification, and a notification counts as delivered only
// after its server acknowledged it. A refusal is the response itself, and MessageWaiting is that of the request.
func (c *notifications) changed(t transition) {
	before, after := t.before, t.after
	isLate := before.State == ledger.Unknown ||
		before.State == ledger.Reserved && after.UpdatedAt.After(before.LeaseUntil.Add(time.Second))
	isReported := after.Status != before.Status && after.Outbox.URL != "" && after.State != ledger.Refused &&
		after.Status != ledger.Pending && (after.Status != ledger.MessageWaiting || isLate)
	hasStatus := func(n ledger.Notification) bool { return n.Status == after.Status }
	if isReported && !slices.ContainsFunc(after.Outbox.Waiting, hasStatus) &&
		!slices.ContainsFunc(after.Outbox.Delivered, hasStatus) {
		c.fail(keptReports, "%s became %s without a notification", t.key, after.Status)
	}
	if after.Kind == ledger.Charge {
		c.lateCharge(t, isLate)
	}
	for _, n := range after.Outbox.Delivered {
		if !slices.ContainsFunc(before.Outbox.Delivered, hasID(n.ID)) && !c.isAcknowledged(after, n.ID) {
			c.fail(keptReports, "%s: the notification of %s (webhook-id %q) counts as delivered, and was not "+
				"acknowledged", t.key, n.Status, n.ID)
		}
	}
	c.kept(t)
	c.scheduled(t)
	c.payerSMS(t)
}

// lateCharge checks that a charge is notified once, and exactly if its outcome was unknown before the write that
// records it. Every merchant here wants it (decision "charge-notif").
func (c *notifications) lateCharge(t transition, isLate bool) {
	before, after := t.before, t.after
	had, has := len(before.Outbox.Waiting)+len(before.Outbox.Delivered),
		len(after.Outbox.Waiting)+len(after.Outbox.Delivered)
	isKnown := after.State == ledger.Done || after.State == ledger.Refused
	switch {
	case isLate && isKnown && has != 1:
		c.fail(keptReports, "%s: its outcome became known late (%s until %s), with %d notifications", t.key,
			before.State, before.LeaseUntil.Sub(history.Start), has)
	case has > 1, has != had && before.State != ledger.Unknown && before.State != ledger.Reserved:
		c.fail(keptReports, "%s has %d notifications, and had %d", t.key, has, had)
	}
}

// isAcknowledged reports whether the server of an entry acknowledged a notification.
func (c *notifications) isAcknowledged(e *ledger.Entry, id string) bool {
	address, err := url.Parse(e.Outbox.URL)
	if err != nil {
		return false
	}
	server := c.merchants.Servers[address.Host]
	return server != nil && server.Acknowledged(id)
}

// kept checks that no notification disappears. One of the outbox, a dead letter too, stays there until it is delivered.
// A delivered one stays known, or is in the outbox again after a replay.
func (c *notifications) kept(t transition) {
	after := t.after.Outbox
	for _, n := range slices.Concat(t.before.Outbox.Delivered, t.before.Outbox.Waiting) {
		if !slices.ContainsFunc(after.Waiting, hasID(n.ID)) && !slices.ContainsFunc(after.Delivered, hasID(n.ID)) {
			c.fail(keptReports, "%s: the notification of %s (dead %q) disappeared", t.key, n.Status, n.DeadReason)
		}
	}
}

// deadLetters checks that a notification becomes a dead letter only after its whole schedule, or after many claims
// without an outcome.
func (c *notifications) deadLetters(t transition) {
	for _, n := range t.after.Outbox.Waiting {
		wasDead := slices.ContainsFunc(t.before.Outbox.Waiting, func(b ledger.Notification) bool {
			return b.ID == n.ID && b.DeadReason != ""
		})
		isNew := n.DeadReason != "" && !wasDead && n.DeadReason != ledger.ReasonNoOutcome
		if age := time.Since(history.Latest(n.At, mirror.LastReplay(t.after))); isNew && age < deadLetterAge {
			c.fail(keptReports, "%s: the notification of %s (webhook-id %q) is dead after %s", t.key, n.Status, n.ID,
				age)
		}
	}
}

// scheduled checks when a notification whose attempt failed is attempted again, and that it becomes a dead letter in
// time if its attempts have no outcome.
func (c *notifications) scheduled(t transition) {
	before, after := t.before.Outbox, t.after.Outbox
	if unrecorded := max(after.UnrecordedAttempts, t.after.UserSMS.UnrecordedAttempts); unrecorded > mostUnrecorded {
		c.fail(keptReports, "%s: %d attempts in a row have no recorded outcome", t.key, unrecorded)
	}
	for _, n := range after.Waiting {
		at := slices.IndexFunc(before.Waiting, hasID(n.ID))
		if at < 0 {
			continue
		}
		isNewlyDead := n.DeadReason == ledger.ReasonNoOutcome && before.Waiting[at].DeadReason == ""
		if isNewlyDead && before.UnrecordedAttempts < mostUnrecorded {
			c.fail(keptReports, "%s: the notification of %s is dead after %d attempts in a row without an outcome",
				t.key, n.Status, before.UnrecordedAttempts)
		}
		if n.Attempts == before.Waiting[at].Attempts+1 && n.DeadReason == "" && !n.Parked {
			c.retried(t, n, after.FailedAttempts[len(after.FailedAttempts)-1])
		}
	}
}

// retried checks the time of the next attempt after a failed one.
func (c *notifications) retried(t transition, n ledger.Notification, failed ledger.FailedAttempt) {
	if n.Attempts > len(retryWaits) || failed.HTTPStatus == responseThrottled {
		return
	}
	wait, planned := n.NextAttemptAt.Sub(failed.At), retryWaits[n.Attempts-1]
	if (wait - planned).Abs() > planned/5 {
		c.fail(keptReports, "%s: attempt %d at the notification of %s failed, and the next one is planned after %s",
			t.key, n.Attempts, n.Status, wait)
	}
	if wait == planned {
		c.unmoved++
	}
	if c.unmoved > mostUnmoved {
		c.fail(keptReports, "%s: %d retries come after exactly the wait of the schedule", t.key, c.unmoved)
	}
}

// payerSMS checks that the payer's SMS is not given up while nothing fails.
func (c *notifications) payerSMS(t transition) {
	before, after := t.before.UserSMS.State, t.after.UserSMS.State
	isGivenUp := before == ledger.UserSMSDue && (after == ledger.UserSMSFailed || after == ledger.UserSMSUnknown)
	if isGivenUp && time.Since(history.Latest(t.after.FinalAt, c.CalmFrom)) > payerSMSBound {
		c.fail(keptReports, "%s: the payer's SMS is %s, and nothing failed", t.key, after)
	}
}

// sameBody checks that a notification has the body of the first one under its webhook-id.
func (c *notifications) sameBody(s *fixture.Shop, receipt outside.Receipt) {
	name := s.Name + " " + receipt.ID
	first, isKnown := c.bodies[name]
	if !isKnown {
		c.bodies[name] = receipt.Body
	} else if !bytes.Equal(first, receipt.Body) {
		c.fail(oneBody, "%s got for %q under the webhook-id %q first %s, then %s", s.Name, receipt.Order, receipt.ID,
			first, receipt.Body)
	}
}

// received checks that a notification which reached a merchant's server has the webhook-id of its entry's notification,
// and the present address. The entry of an SMS may have expired.
// A resend may still find the former address in a cached profile.
func (c *notifications) received(
	s *fixture.Shop, receipt outside.Receipt, hasResentSince func(key string, at time.Time) bool,
) {
	isIt := func(n ledger.Notification) bool {
		return n.ID == receipt.ID && (receipt.Status == "" || string(n.Status) == receipt.Status)
	}
	isKnown := c.Entries.HasDeleted()
	for e := range c.Entries.All() {
		if isKnown {
			break
		}
		isKnown = e.Merchant.ID == s.Profile.ID &&
			(slices.ContainsFunc(e.Outbox.Waiting, isIt) || slices.ContainsFunc(e.Outbox.Delivered, isIt))
	}
	if !isKnown {
		c.fail(keptReports, "the notification of %s for %q has the webhook-id %q, which no entry of %s has",
			receipt.Status, receipt.Order, receipt.ID, s.Name)
	}
	moved, e := c.merchants.Account(s).MovedAt, c.Entries.Payment(receipt.Order)
	if receipt.URL == s.Profile.NotifURL && !moved.IsZero() && c.Rates.Freeze == 0 && e != nil &&
		mirror.LastReplay(e).After(moved) && !hasResentSince(e.Key.String(), moved) {
		c.fail(keptReports, "%s: the replay of %s went to %s, which was changed at %s", e.Key,
			mirror.LastReplay(e).Sub(history.Start), receipt.URL, moved.Sub(history.Start))
	}
}

// progress checks that the notifications of an entry that had their time are delivered, dead or parked, and so that the
// payer got its SMS.
func (c *notifications) progress(e *ledger.Entry) {
	for place, n := range e.Outbox.Waiting {
		waits := time.Since(history.Latest(n.At, c.CalmFrom, mirror.LastReplay(e)))
		isParked := n.Parked && !c.engineers.IsEnabled(e.Merchant.ID, e.Outbox.URL)
		isBehindParked := slices.ContainsFunc(e.Outbox.Waiting[:place], func(n ledger.Notification) bool {
			return n.Parked
		})
		if n.DeadReason == "" && !isParked && !isBehindParked && waits > deliveryBound {
			c.fail(keptReports, "%s: the notification of %s (place %d) is neither delivered nor dead", e.Key, n.Status,
				place)
		}
	}
	if e.UserSMS.State == ledger.UserSMSDue && time.Since(history.Latest(e.FinalAt, c.CalmFrom)) > FinalBound {
		c.fail(keptReports, "%s: the payer's SMS is still due", e.Key)
	}
}

// PoisonFailed reports that a poison record failed its batch.
func (c *notifications) PoisonFailed(err error) {
	c.fail(keptReports, "a poison record fails its batch: %s", err)
}
