package ledger

import (
	"slices"
	"time"
)

// MaxReplays bounds what an entry remembers of its replays: one Replayed a notification and replay.
const MaxReplays = 24

// ReplayNotification sends a notification again from its first attempt, under its own id: one that waits, is parked or dead, or was
// delivered. With a delivered one all that were delivered after it go again, in order, so that the last thing the
// merchant hears is the latest. Where each of them stood before is kept in Replays. It says whether there is such a
// notification.
func (e *Entry) ReplayNotification(id string, now time.Time) bool {
	is := func(n Notification) bool { return n.ID == id }
	if at := slices.IndexFunc(e.Delivered, is); at >= 0 {
		again := slices.Clone(e.Delivered[at:])
		e.Delivered = slices.Clone(e.Delivered[:at])
		e.Outbox = append(again, e.Outbox...)
	}
	at := slices.IndexFunc(e.Outbox, is)
	if at < 0 {
		return false
	}
	for i := range e.Outbox {
		n := &e.Outbox[i]
		if i < at && n.DeadReason == "" && !n.Parked {
			continue // under way: id's turn comes after it
		}
		if i == at || n.Attempts > 0 || n.DeadReason != "" || n.Parked {
			e.Replays = append(e.Replays, ReplayRecord{Status: n.Status, At: now, Attempts: n.Attempts, DeliveredAt: n.DeliveredAt, DeadReason: n.DeadReason})
		}
		n.Attempts, n.DeadReason, n.Parked, n.NextAttemptAt, n.DeliveredAt = 0, "", false, time.Time{}, time.Time{}
	}
	e.trimReplays()
	if e.Outbox[0].NextAttemptAt.IsZero() {
		e.scheduleHead(now)
	}
	e.Reschedule()
	return true
}

// trimReplays drops the oldest replays over MaxReplays, but those that hold a status's first delivery: that the merchant
// was told, and when, is what people ask of an entry for as long as it lives.
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
