package ledger

import "time"

// FastLease is how long a new notification is the relay's alone, which is woken by the stream; after it the sweep may
// claim it. FastMargin is what must be left of it for the relay to post without a claim: an older image is a redelivery.
const (
	FastLease  = 60 * time.Second
	FastMargin = 20 * time.Second
)

// MaxDelivered bounds the delivered notifications that an entry remembers: more than a payment or an SMS can have.
const MaxDelivered = 8

// maxWhy bounds the text of a failed delivery's reason, in bytes. MaxAttempts bounds the failed attempts that an entry
// remembers, the latest: two notifications' whole schedules.
const (
	maxReason   = 200
	MaxAttempts = 20
)

// OutboxHead is the one notification that may be delivered now; nil for none. Those behind it wait, so that an earlier status
// is never delivered after a later one (decision "notification-order"); they wait behind a dead or parked head too.
func (e *Entry) OutboxHead() *Notification {
	if len(e.Outbox) == 0 {
		return nil
	}
	return &e.Outbox[0]
}

// headWithID is the head if it has the id, else nil: what was done to another notification is without meaning.
func (e *Entry) headWithID(id string) *Notification {
	head := e.OutboxHead()
	if head == nil || head.ID != id {
		return nil
	}
	return head
}

// enqueue appends the notification of a status, if there is an address to send it to.
func (e *Entry) enqueue(status Status, now time.Time) {
	if e.NotifyURL == "" {
		return
	}
	e.Outbox = append(e.Outbox, Notification{ID: NotificationID(e.Key, status), Status: status, At: now})
	if len(e.Outbox) == 1 {
		e.scheduleHead(now)
	}
}

// scheduleHead makes the head due: the relay's for FastLease where it was never tried, else the sweep's at once.
func (e *Entry) scheduleHead(now time.Time) {
	head := e.OutboxHead()
	if head == nil {
		return
	}
	head.NextAttemptAt, head.RelayNotified = now, false
	if head.Attempts == 0 {
		head.NextAttemptAt = now.Add(FastLease)
	}
}

// markRelayNotified notes on the entry that is about to be changed that the version at hand has woken the relay for its head. Without
// it each write that comes before the delivery, such as a conflict or the status behind, would wake the relay again: the
// head would be posted twice, and the second time perhaps after the status behind it (decision "notification-order").
func (e *Entry) markRelayNotified() {
	if head := e.OutboxHead(); head != nil {
		head.RelayNotified = true
	}
}

// ClaimDelivery makes the next attempt the caller's: Attempt grows by one, and nobody else tries before next. It returns
// the notification to post, or nil where nothing is due: then another caller has it, or it is dead or parked.
func (e *Entry) ClaimDelivery(now, next time.Time) *Notification {
	head := e.OutboxHead()
	if head == nil || head.DeadReason != "" || head.Parked || head.NextAttemptAt.After(now) {
		return nil
	}
	head.Attempts++
	head.NextAttemptAt = next
	e.Reschedule()
	claimed := *head
	return &claimed
}

// MarkDelivered removes the delivered notification from the outbox and remembers it; the next one becomes due. It says
// whether id was the head; if not, it was delivered before.
func (e *Entry) MarkDelivered(id string, now time.Time) bool {
	head := e.headWithID(id)
	if head == nil {
		return false
	}
	delivered := *head
	delivered.DeliveredAt, delivered.NextAttemptAt, delivered.Parked, delivered.DeadReason = now, time.Time{}, false, ""
	if delivered.Attempts == 0 {
		delivered.Attempts = 1
	}
	e.Outbox = e.Outbox[1:]
	if len(e.Outbox) == 0 {
		e.Outbox = nil
	}
	e.Delivered = append(e.Delivered, delivered)
	if len(e.Delivered) > MaxDelivered {
		e.Delivered = e.Delivered[len(e.Delivered)-MaxDelivered:]
	}
	e.scheduleHead(now)
	e.Reschedule()
	return true
}

// RecordFailedAttempt notes that an attempt on the head failed, which the entry remembers for people to read; next is the
// earliest time of the next one. It says whether it was noted; not where a later attempt is under way or id is no longer
// the head. a.Why is a short reason of ours without any value of the merchant's.
func (e *Entry) RecordFailedAttempt(id string, a FailedAttempt, next time.Time) bool {
	head := e.headWithID(id)
	if head == nil || head.Attempts > a.Number || head.DeadReason != "" {
		return false
	}
	a.Status, a.Reason = head.Status, a.Reason[:min(len(a.Reason), maxReason)]
	head.Attempts, head.NextAttemptAt = a.Number, next
	head.LastStatus, head.LastReason = a.HTTPStatus, a.Reason
	e.FailedAttempts = append(e.FailedAttempts, a)
	if len(e.FailedAttempts) > MaxAttempts {
		e.FailedAttempts = e.FailedAttempts[len(e.FailedAttempts)-MaxAttempts:]
	}
	e.Reschedule()
	return true
}

// DeadLetter gives the head up, with the reason. It stays in the entry until it is replayed, and so do those behind it.
func (e *Entry) DeadLetter(id, reason string) bool {
	head := e.headWithID(id)
	if head == nil || head.DeadReason != "" || reason == "" {
		return false
	}
	head.DeadReason, head.NextAttemptAt = reason, time.Time{}
	e.Reschedule()
	return true
}

// Postpone moves the head, which is due, to next without counting an attempt: its endpoint is ill, and few are tried
// there at a time. It says whether the head was due.
func (e *Entry) Postpone(id string, now, next time.Time) bool {
	head := e.headWithID(id)
	if head == nil || head.DeadReason != "" || head.Parked || head.NextAttemptAt.After(now) {
		return false
	}
	head.NextAttemptAt = next
	e.Reschedule()
	return true
}

// Park stops the head's clock while the merchant's endpoint is disabled. It says whether it was running.
func (e *Entry) Park() bool {
	head := e.OutboxHead()
	if head == nil || head.DeadReason != "" || head.Parked {
		return false
	}
	head.Parked, head.NextAttemptAt = true, time.Time{}
	e.Reschedule()
	return true
}

// Unpark makes a parked head due again. It says whether it was parked.
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

// ClaimUserSMS makes the next try at the purchaser's SMS the caller's: UserSMSAttempts grows by one, and nobody else tries
// before next. It says whether one is due.
func (e *Entry) ClaimUserSMS(now, next time.Time) bool {
	if e.UserSMS != UserSMSDue || e.UserSMSAt.After(now) {
		return false
	}
	e.UserSMSAttempts++
	e.UserSMSAt = next
	e.Reschedule()
	return true
}

// RecordUserSMS notes where the purchaser's SMS stands: sent, failed or unknown for good, or due again at next. It says
// whether one was owed.
func (e *Entry) RecordUserSMS(state UserSMSState, next time.Time) bool {
	if e.UserSMS != UserSMSDue {
		return false
	}
	e.UserSMS, e.UserSMSAt = state, time.Time{}
	if state == UserSMSDue {
		e.UserSMSAt = next
	}
	e.Reschedule()
	return true
}
