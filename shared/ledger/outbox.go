package ledger

import (
	"slices"
	"time"
)

// FastLease is how long only the relay, woken by the stream, may attempt a new notification; after it the sweep may
// claim it. FastMargin is the part of it that must remain for a post without a claim: an older image is a redelivery.
const (
	FastLease  = 60 * time.Second
	FastMargin = 20 * time.Second
)

const (
	// MaxDelivered bounds the delivered notifications that an entry remembers: more than a payment or an SMS can have.
	MaxDelivered = 8
	// MaxAttempts bounds the failed attempts that an entry remembers: the whole schedules of two notifications.
	MaxAttempts = 20
	// MaxOpenClaims bounds the claims of one attempt without a recorded outcome: about 23 hours of claims.
	MaxOpenClaims = 50
	// ReasonNoOutcome is the reason of a dead letter whose last MaxOpenClaims claims have no outcome.
	ReasonNoOutcome = "no-outcome"
	// maxReason bounds the text of a failed attempt's reason, in bytes.
	maxReason = 200
)

const (
	// minClaimLease is the lease of the first claim of an attempt. It doubles with each claim to maxClaimLease.
	minClaimLease, maxClaimLease = time.Minute, 30 * time.Minute
	// minPostponement and maxPostponement bound the wait of an act that could not be done.
	minPostponement, maxPostponement = time.Minute, 5 * time.Minute
	// firstParkedCheck is the wait before a parked notification's endpoint is read again for the first time: it may
	// have been enabled while the notification was being parked. The other two bound the later waits.
	firstParkedCheck               = time.Minute
	minParkedCheck, maxParkedCheck = time.Hour, 24 * time.Hour
)

// claimLease is the lease of a claim. openClaims counts the claims without an outcome, this one included.
func claimLease(openClaims int) time.Duration {
	const doublings = 5 // more than maxClaimLease
	return min(minClaimLease<<min(max(openClaims-1, 0), doublings), maxClaimLease)
}

// Postponement is the wait of an act that could not be done at now, and could first have been done at since. It grows
// with the age of the act.
func Postponement(since, now time.Time) time.Duration {
	return min(max(now.Sub(since)/2, minPostponement), maxPostponement)
}

// active is true if the notification may be attempted: it is neither a dead letter nor parked.
func (n *Notification) active() bool { return n.DeadReason == "" && !n.Parked }

// headIndex is the position of the head in the outbox, -1 for none.
func (e *Entry) headIndex() int {
	return slices.IndexFunc(e.Outbox, func(n Notification) bool { return n.DeadReason == "" })
}

// OutboxHead is the one notification that may be attempted; nil for none. It is the first that is not a dead letter.
// The others wait, also behind a parked one, so that an earlier status is never delivered after a later one (decision
// "notification-order").
func (e *Entry) OutboxHead() *Notification {
	at := e.headIndex()
	if at < 0 {
		return nil
	}
	return &e.Outbox[at]
}

// activeHead is the head, if it may be attempted.
func (e *Entry) activeHead() *Notification {
	if head := e.OutboxHead(); head != nil && head.active() {
		return head
	}
	return nil
}

// headWithID is the head, if it has the id: what happened to another notification does not count.
func (e *Entry) headWithID(id string) *Notification {
	if head := e.OutboxHead(); head != nil && head.ID == id {
		return head
	}
	return nil
}

// enqueue appends the notification of a status, if the entry has a URL for it.
func (e *Entry) enqueue(status Status, now time.Time) {
	if e.NotifyURL == "" {
		return
	}
	e.Outbox = append(e.Outbox, Notification{ID: NotificationID(e.Key, status), Status: status, At: now})
	if e.headIndex() == len(e.Outbox)-1 {
		e.scheduleHead(now)
	}
}

// scheduleHead makes the head due: after FastLease if it was never attempted, else at once.
func (e *Entry) scheduleHead(now time.Time) {
	e.OpenClaims = 0
	head := e.OutboxHead()
	if head == nil {
		return
	}
	head.NextAttemptAt, head.RelayNotified = now, false
	if head.Attempts == 0 {
		head.NextAttemptAt = now.Add(FastLease)
	}
}

// markRelayNotified records, before a change, that the current version has woken the relay for its head. Without it,
// each write before the delivery would wake the relay again, such as a conflict or the next status. The relay would
// post the head twice, perhaps after the next status (decision "notification-order").
func (e *Entry) markRelayNotified() {
	if head := e.OutboxHead(); head != nil {
		head.RelayNotified = true
	}
}

// DeliveryClaim is a claim of an attempt at the head of the outbox. The pair of Attempts and OpenClaims is its fence:
// the failure of an attempt counts only if the entry still has this pair.
type DeliveryClaim struct {
	Notification
	OpenClaims int
}

// HeadClaim is the claim on the head as it is. The relay uses it during FastLease, without a write; nil for no head.
func (e *Entry) HeadClaim() *DeliveryClaim {
	head := e.activeHead()
	if head == nil {
		return nil
	}
	return &DeliveryClaim{Notification: *head, OpenClaims: e.OpenClaims}
}

// DeliveryDue is true if the head is due for an attempt.
func (e *Entry) DeliveryDue(now time.Time) bool {
	head := e.activeHead()
	return head != nil && !head.NextAttemptAt.After(now)
}

// ClaimDelivery makes the next attempt the caller's: no other caller claims it before the claim's lease has ended. The
// lease grows with each claim that has no recorded outcome. After MaxOpenClaims such claims the head becomes a dead
// letter instead. claim is nil if there is nothing to post. changed is true if the entry changed.
func (e *Entry) ClaimDelivery(now time.Time) (claim *DeliveryClaim, changed bool) {
	if !e.DeliveryDue(now) {
		return nil, false
	}
	if e.OpenClaims >= MaxOpenClaims {
		return nil, e.DeadLetter(e.OutboxHead().ID, ReasonNoOutcome, now)
	}
	e.OpenClaims++
	e.OutboxHead().NextAttemptAt = now.Add(claimLease(e.OpenClaims))
	e.Reschedule()
	return e.HeadClaim(), true
}

// ClaimFastDelivery makes the first attempt at the head the relay's, while FastLease lasts. A repeated record of the
// stream then posts nothing. claim is nil, and nothing changed, if the attempt was claimed or made before.
func (e *Entry) ClaimFastDelivery(now time.Time) (claim *DeliveryClaim) {
	head := e.activeHead()
	if head == nil || head.Attempts > 0 || e.OpenClaims > 0 || !head.NextAttemptAt.After(now) {
		return nil
	}
	e.OpenClaims++
	e.Reschedule()
	return e.HeadClaim()
}

// MarkDelivered moves the delivered notification from the outbox to Delivered, and makes the next one due. It returns
// whether id was the head or a dead letter; if not, it was delivered before.
func (e *Entry) MarkDelivered(id string, now time.Time) bool {
	at := slices.IndexFunc(e.Outbox, func(n Notification) bool { return n.ID == id })
	head := e.headIndex()
	if at < 0 || at != head && e.Outbox[at].DeadReason == "" {
		return false
	}
	delivered := e.Outbox[at]
	delivered.DeliveredAt, delivered.NextAttemptAt, delivered.Parked, delivered.DeadReason = now, time.Time{}, false, ""
	delivered.Attempts++
	e.Outbox = slices.Delete(e.Outbox, at, at+1)
	if len(e.Outbox) == 0 {
		e.Outbox = nil
	}
	e.Delivered = latest(append(e.Delivered, delivered), MaxDelivered)
	if at == head {
		e.scheduleHead(now)
	}
	e.Reschedule()
	return true
}

// RecordFailedAttempt records the failure of a claimed attempt; the next one is not before next. It returns false, and
// records nothing, if the attempt was claimed again, has an outcome, or is no longer at the head. a.Reason is a short
// text of ours without any value of the merchant's.
func (e *Entry) RecordFailedAttempt(claim DeliveryClaim, a FailedAttempt, next time.Time) bool {
	head := e.headWithID(claim.ID)
	if head == nil || head.Attempts != claim.Attempts || e.OpenClaims != claim.OpenClaims {
		return false
	}
	a.Number, a.Status, a.Reason = claim.Attempts+1, head.Status, a.Reason[:min(len(a.Reason), maxReason)]
	head.Attempts, head.NextAttemptAt, e.OpenClaims = a.Number, next, 0
	head.LastStatus, head.LastReason = a.HTTPStatus, a.Reason
	e.FailedAttempts = latest(append(e.FailedAttempts, a), MaxAttempts)
	e.Reschedule()
	return true
}

// latest is the end of a list, at most limit long.
func latest[T any](list []T, limit int) []T { return list[max(0, len(list)-limit):] }

// DeadLetter makes the head a dead letter, with the reason, and makes the next notification due. The dead letter stays
// in the outbox until it is replayed. It returns whether the entry changed.
func (e *Entry) DeadLetter(id, reason string, now time.Time) bool {
	head := e.headWithID(id)
	if head == nil || reason == "" {
		return false
	}
	head.DeadReason, head.NextAttemptAt, head.Parked = reason, time.Time{}, false
	e.scheduleHead(now)
	e.Reschedule()
	return true
}

// PostponeDelivery moves a due head to next without counting an attempt, because the attempt cannot be made now. It
// returns whether the head was due.
func (e *Entry) PostponeDelivery(now, next time.Time) bool {
	if !e.DeliveryDue(now) {
		return false
	}
	e.OutboxHead().NextAttemptAt = next
	e.Reschedule()
	return true
}

// Park stops the head's clock while the merchant's endpoint is disabled. The sweep reads the endpoint again after a
// minute, then hourly, later daily: it may have been enabled while this write was on its way. Park returns whether the
// clock was running.
func (e *Entry) Park(now time.Time) bool {
	head := e.activeHead()
	if head == nil {
		return false
	}
	head.Parked, head.NextAttemptAt, e.OpenClaims = true, now.Add(firstParkedCheck), 0
	e.Reschedule()
	return true
}

// ParkedCheckDue is true if the endpoint of a parked head must be read again.
func (e *Entry) ParkedCheckDue(now time.Time) bool {
	head := e.OutboxHead()
	return head != nil && head.Parked && !head.NextAttemptAt.IsZero() && !head.NextAttemptAt.After(now)
}

// PostponeParkedCheck makes the next check of a parked head due later. It returns whether a check was due.
func (e *Entry) PostponeParkedCheck(now time.Time) bool {
	if !e.ParkedCheckDue(now) {
		return false
	}
	head := e.OutboxHead()
	head.NextAttemptAt = now.Add(min(max(now.Sub(head.At)/2, minParkedCheck), maxParkedCheck))
	e.Reschedule()
	return true
}

// Unpark makes a parked head due again. It returns whether it was parked.
func (e *Entry) Unpark(now time.Time) bool {
	head := e.OutboxHead()
	if head == nil || !head.Parked {
		return false
	}
	head.Parked = false
	e.scheduleHead(now)
	e.Reschedule()
	return true
}
