package ledger

import (
	"hash/fnv"
	"time"
)

// Reschedule sets DueAt to the earliest of the entry's timers, or clears it. Every transition ends with it, and Book
// calls it before each write; nothing else sets DueAt.
func (e *Entry) Reschedule() {
	e.DueAt = time.Time{}
	if e.State == Reserved {
		e.dueBy(e.LeaseUntil.Add(LapseMargin))
	}
	if e.pollable() {
		e.dueBy(e.PollAt)
	}
	if e.claimOpen() {
		e.dueBy(e.Claim.CheckAt)
	}
	if head := e.OutboxHead(); head != nil {
		e.dueBy(head.NextAttemptAt)
	}
	if e.UserSMS == UserSMSDue {
		e.dueBy(e.UserSMSAt)
	}
	e.dueBy(e.BindAt)
	if e.PastRetention(e.DueAt) {
		e.DueAt = time.Time{} // by then it counts as absent
	}
}

// ClearTimers removes an entry past its retention from the due index, where it would otherwise stay until the table
// deletes it. It returns whether the entry changed.
func (e *Entry) ClearTimers(now time.Time) bool {
	if !e.PastRetention(now) || e.DueAt.IsZero() {
		return false
	}
	e.LeaseUntil = e.ExpireAt
	e.PollAt, e.UserSMSAt, e.Claim.CheckAt, e.BindAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	for i := range e.Outbox {
		e.Outbox[i].NextAttemptAt = time.Time{}
	}
	e.Reschedule()
	return true
}

// dueBy brings DueAt forward to at, if at is set.
func (e *Entry) dueBy(at time.Time) {
	if !at.IsZero() && (e.DueAt.IsZero() || at.Before(e.DueAt)) {
		e.DueAt = at
	}
}

// pollable is true while PollAt counts: a payment's status is not final, or another entry is unknown and waits for its
// merchant's retry or a manual resolution. A reservation has its lease instead.
func (e *Entry) pollable() bool {
	if e.Kind == Payment {
		return e.State != Reserved && !e.StatusFinal()
	}
	return e.State == Unknown
}

// claimOpen is true while a claim waits for its confirmation, also during a reservation.
func (e *Entry) claimOpen() bool { return e.Claim.Status != "" && !e.StatusFinal() }

// RequestLookup makes the next lookup of a payment due now, and reports whether that changed the entry. A payment with
// a final status has none, and one whose call is in flight gets its own.
func (e *Entry) RequestLookup(now time.Time) bool {
	if e.Kind != Payment || !e.pollable() || !e.PollAt.IsZero() && !e.PollAt.After(now) {
		return false
	}
	e.PollAt = now
	e.Reschedule()
	return true
}

// EndReleasedLookups ends the lookups of a released payment that a callback requested, after a response without a
// success. It reports whether that changed the entry.
func (e *Entry) EndReleasedLookups() bool {
	if e.State != Released || e.claimOpen() || e.PollAt.IsZero() {
		return false
	}
	e.PollAt, e.PollAttempts = time.Time{}, 0
	e.Reschedule()
	return true
}

// LookupDue is true once the next lookup is due: the next poll, or that of an open claim.
func (e *Entry) LookupDue(now time.Time) bool {
	due := func(at time.Time) bool { return !at.IsZero() && !at.After(now) }
	return e.pollable() && due(e.PollAt) || e.claimOpen() && due(e.Claim.CheckAt)
}

// PostponeLookup moves due lookups to next, because they cannot be made now. It returns whether one was due.
func (e *Entry) PostponeLookup(now, next time.Time) bool {
	if !e.LookupDue(now) {
		return false
	}
	for _, at := range []*time.Time{&e.PollAt, &e.Claim.CheckAt} {
		if !at.IsZero() && !at.After(now) {
			*at = next
		}
	}
	e.Reschedule()
	return true
}

// WakesRelay is true if the stream must wake the relay for this version. The head of the outbox is active and was never
// attempted, and no earlier version has woken the relay for it. The stream's filter reads an attribute with this value.
func (e *Entry) WakesRelay() bool {
	head := e.activeHead()
	return head != nil && head.Attempts == 0 && e.OpenClaims == 0 && !head.RelayNotified
}

// DueShard is the partition of the due index that a key belongs to, from 0 to DueShards-1.
func DueShard(key Key) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key.String()))
	return int(h.Sum32() % DueShards)
}

// String is the key as it is stored: kind#id.
func (k Key) String() string { return string(k.Kind) + "#" + k.ID }

// MerchantDay is the partition of the day index: the merchant's id and the UTC day. It is "" without a merchant or a
// day.
func MerchantDay(merchantID string, day time.Time) string {
	if merchantID == "" || day.IsZero() {
		return ""
	}
	return merchantID + "#" + day.UTC().Format(time.DateOnly)
}

// DaySort is the position of an entry within its MerchantDay: the time of its creation.
func (e *Entry) DaySort() string { return e.CreatedAt.UTC().Format(DaySortLayout) }

// DaySortLayout is the form of a DaySort.
const DaySortLayout = "15:04:05.000"
