package ledger

import (
	"slices"
	"time"
)

// MaxReplays bounds what an entry remembers of its replays: one Replayed a notification and replay.
const MaxReplays = 24

// Replay sends a notification again from its first attempt, under its own id: one that waits, is parked or dead, or was
// delivered. With a delivered one all that were delivered after it go again, in order, so that the last thing the
// merchant hears is the latest. Where each of them stood before is kept in Replays. It says whether there is such a
// notification.
func (e *Entry) Replay(id string, now time.Time) bool {
	is := func(n Notification) bool { return n.ID == id }
	if at := slices.IndexFunc(e.Told, is); at >= 0 {
		again := slices.Clone(e.Told[at:])
		e.Told = slices.Clone(e.Told[:at])
		e.Outbox = append(again, e.Outbox...)
	}
	at := slices.IndexFunc(e.Outbox, is)
	if at < 0 {
		return false
	}
	for i := range e.Outbox {
		n := &e.Outbox[i]
		if i < at && n.Dead == "" && !n.Parked {
			continue // under way: id's turn comes after it
		}
		if i == at || n.Attempt > 0 || n.Dead != "" || n.Parked {
			e.Replays = append(e.Replays, Replayed{Status: n.Status, At: now, Attempt: n.Attempt, ToldAt: n.ToldAt, Dead: n.Dead})
		}
		n.Attempt, n.Dead, n.Parked, n.Next, n.ToldAt = 0, "", false, time.Time{}, time.Time{}
	}
	e.forgetReplays()
	if e.Outbox[0].Next.IsZero() {
		e.arm(now)
	}
	e.Reschedule()
	return true
}

// forgetReplays drops the oldest replays over MaxReplays, but those that hold a status's first delivery: that the merchant
// was told, and when, is what people ask of an entry for as long as it lives.
func (e *Entry) forgetReplays() {
	for len(e.Replays) > MaxReplays {
		proved := map[Status]bool{}
		at := slices.IndexFunc(e.Replays, func(r Replayed) bool {
			first := !r.ToldAt.IsZero() && !proved[r.Status]
			proved[r.Status] = proved[r.Status] || first
			return !first
		})
		at = max(at, 0) // more statuses than there can be
		e.Replays = slices.Delete(e.Replays, at, at+1)
	}
}
