package ledger

import "time"

// reached is true once a time has come; zero means never.
func reached(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// ClearTimers removes an entry past its retention from the due index, where it would otherwise stay until the table
// deletes it. It returns whether the entry changed.
func (e *Entry) ClearTimers(now time.Time) bool {
	if !e.PastRetention(now) || e.DueAt.IsZero() {
		return false
	}
	e.LeaseUntil = e.ExpireAt
	e.Poll.At, e.UserSMS.At, e.Claim.CheckAt, e.BindAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	for i := range e.Outbox.Waiting {
		e.Outbox.Waiting[i].NextAttemptAt = time.Time{}
	}
	e.Reschedule()
	return true
}

// RequestLookup makes the next lookup of a payment due now, and reports whether that changed the entry. A payment with
// a final status has none, and one whose call is in flight gets its own.
func (e *Entry) RequestLookup(now time.Time) bool {
	if e.Kind != Payment || !e.pollable(e.Kind, e.State) || reached(e.Poll.At, now) {
		return false
	}
	e.Poll.At = now
	return true
}

// EndReleasedLookups ends the lookups of a released payment that a callback requested, after a response without a
// success. It reports whether that changed the entry.
func (e *Entry) EndReleasedLookups() bool {
	if e.State != Released || e.claimOpen() || e.Poll.At.IsZero() {
		return false
	}
	e.Poll = Poll{}
	return true
}

// LookupDue is true once the next lookup is due: the next poll, or that of an open claim.
func (e *Entry) LookupDue(now time.Time) bool {
	return e.pollable(e.Kind, e.State) && reached(e.Poll.At, now) || e.claimOpen() && reached(e.Claim.CheckAt, now)
}

// PostponeLookup moves due lookups to next, because they cannot be made now. It returns whether one was due.
func (e *Entry) PostponeLookup(now, next time.Time) bool {
	if !e.LookupDue(now) {
		return false
	}
	for _, at := range []*time.Time{&e.Poll.At, &e.Claim.CheckAt} {
		if reached(*at, now) {
			*at = next
		}
	}
	return true
}
