package ledger

import "time"

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
	// maxReason bounds the text of a failed attempt's reason, in bytes.
	maxReason = 200
)

// active is true if the notification may be attempted: it is neither a dead letter nor parked.
func (n *Notification) active() bool { return n.DeadReason == "" && !n.Parked }

// OutboxHead is the one notification that may be attempted; nil for none. The others wait, also behind a dead letter or
// a parked one, so that an earlier status is never delivered after a later one (decision "notification-order").
func (e *Entry) OutboxHead() *Notification {
	if len(e.Outbox) == 0 {
		return nil
	}
	return &e.Outbox[0]
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
	if len(e.Outbox) == 1 {
		e.scheduleHead(now)
	}
}

// scheduleHead makes the head due: after FastLease if it was never attempted, else at once.
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

// markRelayNotified records, before a change, that the current version has woken the relay for its head. Without it,
// each write before the delivery would wake the relay again, such as a conflict or the next status. The relay would
// post the head twice, perhaps after the next status (decision "notification-order").
func (e *Entry) markRelayNotified() {
	if head := e.OutboxHead(); head != nil {
		head.RelayNotified = true
	}
}

// ClaimDelivery makes the next attempt the caller's: Attempts grows by one, and no other caller attempts it before
// next. It returns the notification to post, or nil if none is due.
func (e *Entry) ClaimDelivery(now, next time.Time) *Notification {
	head := e.activeHead()
	if head == nil || head.NextAttemptAt.After(now) {
		return nil
	}
	head.Attempts++
	head.NextAttemptAt = next
	e.Reschedule()
	claimed := *head
	return &claimed
}

// MarkDelivered moves the delivered notification from the outbox to Delivered, and makes the next one due. It returns
// whether id was the head; if not, it was delivered before.
func (e *Entry) MarkDelivered(id string, now time.Time) bool {
	head := e.headWithID(id)
	if head == nil {
		return false
	}
	delivered := *head
	delivered.DeliveredAt, delivered.NextAttemptAt, delivered.Parked, delivered.DeadReason = now, time.Time{}, false, ""
	delivered.Attempts = max(delivered.Attempts, 1)
	e.Outbox = e.Outbox[1:]
	if len(e.Outbox) == 0 {
		e.Outbox = nil
	}
	e.Delivered = latest(append(e.Delivered, delivered), MaxDelivered)
	e.scheduleHead(now)
	e.Reschedule()
	return true
}

// RecordFailedAttempt records a failed attempt at the head; the next one is not before next. It returns false, and
// records nothing, if a later attempt is in flight or id is no longer the head. a.Reason is a short text of ours
// without any value of the merchant's.
func (e *Entry) RecordFailedAttempt(id string, a FailedAttempt, next time.Time) bool {
	head := e.headWithID(id)
	if head == nil || head.Attempts > a.Number || head.DeadReason != "" {
		return false
	}
	a.Status, a.Reason = head.Status, a.Reason[:min(len(a.Reason), maxReason)]
	head.Attempts, head.NextAttemptAt = a.Number, next
	head.LastStatus, head.LastReason = a.HTTPStatus, a.Reason
	e.FailedAttempts = latest(append(e.FailedAttempts, a), MaxAttempts)
	e.Reschedule()
	return true
}

// latest is the end of a list, at most limit long.
func latest[T any](list []T, limit int) []T { return list[max(0, len(list)-limit):] }

// DeadLetter makes the head a dead letter, with the reason. It stays in the outbox until it is replayed, and the others
// stay behind it. It returns whether the entry changed.
func (e *Entry) DeadLetter(id, reason string) bool {
	head := e.headWithID(id)
	if head == nil || head.DeadReason != "" || reason == "" {
		return false
	}
	head.DeadReason, head.NextAttemptAt = reason, time.Time{}
	e.Reschedule()
	return true
}

// Postpone moves a due head to next without counting an attempt, because its endpoint is failing and gets few attempts
// at a time. It returns whether the head was due.
func (e *Entry) Postpone(id string, now, next time.Time) bool {
	head := e.headWithID(id)
	if head == nil || !head.active() || head.NextAttemptAt.After(now) {
		return false
	}
	head.NextAttemptAt = next
	e.Reschedule()
	return true
}

// Park stops the head's clock while the merchant's endpoint is disabled. It returns whether the clock was running.
func (e *Entry) Park() bool {
	head := e.activeHead()
	if head == nil {
		return false
	}
	head.Parked, head.NextAttemptAt = true, time.Time{}
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

// ClaimUserSMS makes the next attempt at the payer's SMS the caller's: UserSMSAttempts grows by one, and no other
// caller attempts it before next. It returns whether one is due.
func (e *Entry) ClaimUserSMS(now, next time.Time) bool {
	if e.UserSMS != UserSMSDue || e.UserSMSAt.After(now) {
		return false
	}
	e.UserSMSAttempts++
	e.UserSMSAt = next
	e.Reschedule()
	return true
}

// RecordUserSMS records the state of the payer's SMS: permanently sent, failed or unknown, or due again at next. It
// returns whether one was due.
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
