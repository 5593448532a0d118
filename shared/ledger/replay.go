package ledger

import (
	"slices"
	"time"
)

// MaxReplays bounds the replays that an entry remembers: one ReplayRecord per notification and replay.
const MaxReplays = 24

// ReplayNotification sends a notification again from its first attempt, under its own id: one that waits, is parked, is
// a dead letter, or was delivered. All later ones that were delivered or given up go again too, in order, so that the
// latest status is the last one that the merchant gets. Earlier dead letters stay dead letters. Replays keeps the
// values from before. It returns whether there is such a notification.
func (e *Entry) ReplayNotification(id string, now time.Time) bool {
	hasID := func(n Notification) bool { return n.ID == id }
	all := slices.Concat(e.Delivered, e.Outbox)
	at := slices.IndexFunc(all, hasID)
	if at < 0 {
		return false
	}
	first := all[at].Status.progress()
	again := func(n Notification) bool { return n.Status.progress() >= first }
	e.Delivered = slices.DeleteFunc(slices.Clone(e.Delivered), again)
	e.Outbox = slices.DeleteFunc(all, func(n Notification) bool { return !n.DeliveredAt.IsZero() && !again(n) })
	slices.SortStableFunc(e.Outbox, func(a, b Notification) int { return a.Status.progress() - b.Status.progress() })
	for i := range e.Outbox {
		n := &e.Outbox[i]
		if !again(*n) && (n.active() || n.DeadReason != "") {
			continue // it comes before id
		}
		if n.ID == id || n.Attempts > 0 || !n.active() {
			e.Replays = append(e.Replays, ReplayRecord{
				Status: n.Status, At: now, Attempts: n.Attempts, DeliveredAt: n.DeliveredAt, DeadReason: n.DeadReason,
			})
		}
		n.Attempts, n.DeadReason, n.Parked, n.NextAttemptAt, n.DeliveredAt = 0, "", false, time.Time{}, time.Time{}
	}
	e.trimReplays()
	if e.OutboxHead().NextAttemptAt.IsZero() {
		e.scheduleHead(now)
	}
	e.Reschedule()
	return true
}

// SendNow sends the head of the outbox now, although it waits for a later attempt or is parked. It starts again from
// its first attempt, as a replay does, so that a manual send never uses up the schedule. It returns whether the head
// waited (see Waits).
func (e *Entry) SendNow(now time.Time) bool {
	return e.Waits(now) && e.ReplayNotification(e.OutboxHead().ID, now)
}

// Waits is true if the head is parked, or its next attempt is further away than FastLease. It is false while an attempt
// may be in progress: a second one beside it could deliver this status after the next one (decision
// "notification-order").
func (e *Entry) Waits(now time.Time) bool {
	head := e.OutboxHead()
	if head == nil || head.Parked {
		return head != nil
	}
	// Without its lease, the time of the next attempt is when the last claim was made.
	inProgress := e.OpenClaims > 0 && now.Before(head.NextAttemptAt.Add(minClaimLease-claimLease(e.OpenClaims)))
	return !inProgress && head.NextAttemptAt.After(now.Add(FastLease))
}

// SelectAddress makes an address that was the profile's follow the profile again, or stay the former one. An address
// that the request named always stays (decision "notification-address").
func (e *Entry) SelectAddress(former bool) {
	switch {
	case e.NotifyFrom == AddressOfRequest:
	case former:
		e.NotifyFrom = AddressFormer
	default:
		e.NotifyFrom = AddressOfProfile
	}
}

// trimReplays drops the oldest replays over MaxReplays, except those with a status's first delivery. For as long as an
// entry lives, people need the proof that the merchant was notified, and when.
func (e *Entry) trimReplays() {
	for len(e.Replays) > MaxReplays {
		proved := map[Status]bool{}
		at := slices.IndexFunc(e.Replays, func(r ReplayRecord) bool {
			first := !r.DeliveredAt.IsZero() && !proved[r.Status]
			proved[r.Status] = proved[r.Status] || first
			return !first
		})
		at = max(at, 0) // more statuses than there can be
		e.Replays = slices.Delete(e.Replays, at, at+1)
	}
}
