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
func (o *Outbox) ReplayNotification(id string, now time.Time) bool {
	hasID := func(n Notification) bool { return n.ID == id }
	all := slices.Concat(o.Delivered, o.Waiting)
	at := slices.IndexFunc(all, hasID)
	if at < 0 {
		return false
	}
	first := all[at].Status.progress()
	again := func(n Notification) bool { return n.Status.progress() >= first }
	o.Delivered = slices.DeleteFunc(slices.Clone(o.Delivered), again)
	o.Waiting = slices.DeleteFunc(all, func(n Notification) bool { return !n.DeliveredAt.IsZero() && !again(n) })
	slices.SortStableFunc(o.Waiting, func(a, b Notification) int { return a.Status.progress() - b.Status.progress() })
	for i := range o.Waiting {
		n := &o.Waiting[i]
		if !again(*n) && (n.active() || n.DeadReason != "") {
			continue // it comes before id
		}
		if n.ID == id || n.Attempts > 0 || !n.active() {
			o.Replays = append(o.Replays, ReplayRecord{
				Status: n.Status, At: now, Attempts: n.Attempts, DeliveredAt: n.DeliveredAt, DeadReason: n.DeadReason,
			})
		}
		n.Attempts, n.DeadReason, n.Parked, n.NextAttemptAt, n.DeliveredAt = 0, "", false, time.Time{}, time.Time{}
	}
	o.trimReplays()
	if o.Head().NextAttemptAt.IsZero() {
		o.scheduleHead(now)
	}
	return true
}

// MaxResends is the number of remembered replays from which on a merchant's resend is refused. It leaves the other half
// of MaxReplays to engineers, so that no merchant displaces a record.
const MaxResends = MaxReplays / 2

// ResendRefusal is why a merchant's resend changes nothing; "" if it is queued. The values are X-Error-Reason.
type ResendRefusal string

// The refusals.
const (
	ResendNoNotification ResendRefusal = "no-notification"        // the entry has none with this id
	ResendOutstanding    ResendRefusal = "outstanding"            // a notification of the entry waits, or is parked
	ResendLaterStatus    ResendRefusal = "later-status-delivered" // this status would come after a later one
	ResendTooOften       ResendRefusal = "resent-too-often"
)

// ResendNotification sends a delivered notification or a dead letter again for its merchant, as ReplayNotification
// does. It refuses while another notification waits: so at most one is outstanding, and none is on its way beside it
// (decision "notification-order"). The address follows the profile again.
func (o *Outbox) ResendNotification(id string, now time.Time) ResendRefusal {
	all := slices.Concat(o.Delivered, o.Waiting)
	at := slices.IndexFunc(all, func(n Notification) bool { return n.ID == id })
	if at < 0 {
		return ResendNoNotification
	}
	isLater := func(n Notification) bool { return n.Status.progress() > all[at].Status.progress() }
	switch {
	case o.Head() != nil:
		return ResendOutstanding
	case slices.ContainsFunc(o.Delivered, isLater):
		return ResendLaterStatus
	case len(o.Replays) >= MaxResends:
		return ResendTooOften
	}
	o.SelectAddress(false)
	o.ReplayNotification(id, now)
	return ""
}

// SendNow sends the head of the outbox now, although it waits for a later attempt or is parked. It starts again from
// its first attempt, as a replay does, so that a manual send never uses up the schedule. It returns whether the head
// waited (see Waits).
func (o *Outbox) SendNow(now time.Time) bool {
	return o.Waits(now) && o.ReplayNotification(o.Head().ID, now)
}

// Waits is true if the head is parked, or its next attempt is further away than FastLease. It is false while an attempt
// may be in progress: a second one beside it could deliver this status after the next one (decision
// "notification-order").
func (o *Outbox) Waits(now time.Time) bool {
	head := o.Head()
	if head == nil || head.Parked {
		return head != nil
	}
	// Without its lease, the time of the next attempt is when the last claim was made.
	extended := claimLease(o.UnrecordedAttempts) - minClaimLease
	inProgress := o.UnrecordedAttempts > 0 && now.Before(head.NextAttemptAt.Add(-extended))
	return !inProgress && head.NextAttemptAt.After(now.Add(FastLease))
}

// SelectAddress makes an address that was the profile's follow the profile again, or stay the former one. An address
// that the request named always stays (decision "notification-address").
func (o *Outbox) SelectAddress(former bool) {
	switch {
	case o.From == AddressOfRequest:
	case former:
		o.From = AddressFormer
	default:
		o.From = AddressOfProfile
	}
}

// trimReplays drops the oldest replays over MaxReplays, except those with a status's first delivery. For as long as an
// entry lives, people need the proof that the merchant was notified, and when.
func (o *Outbox) trimReplays() {
	for len(o.Replays) > MaxReplays {
		at, proved := 0, map[Status]bool{} // 0: more statuses than there can be
		for i, r := range o.Replays {
			if r.DeliveredAt.IsZero() || proved[r.Status] {
				at = i
				break
			}
			proved[r.Status] = true
		}
		o.Replays = slices.Delete(o.Replays, at, at+1)
	}
}
