package ledger

import (
	"slices"
	"time"
)

// Timestamp converts a time to the stored form: UTC, in whole milliseconds.
func Timestamp(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// Leased is true while an attempt owns the reservation: another one must wait.
func (e *Entry) Leased(now time.Time) bool { return e.State == Reserved && now.Before(e.LeaseUntil) }

// LeaseLapsed is true if the lease ended without a stored outcome: the reservation counts as unknown.
func (e *Entry) LeaseLapsed(now time.Time) bool {
	return e.State == Reserved && !now.Before(e.LeaseUntil)
}

// LapseMargin is how long after its lease's end the sweep marks a reservation as lapsed. A sweep whose clock is ahead
// by less than that does not touch a live reservation. A merchant's retry does not wait for it.
const LapseMargin = time.Minute

// LapseDue is true if the sweep may mark the reservation as lapsed.
func (e *Entry) LapseDue(now time.Time) bool { return e.LeaseLapsed(now.Add(-LapseMargin)) }

// PastRetention is true from ExpireAt on: the entry counts as absent, even if the table has not deleted it yet.
func (e *Entry) PastRetention(now time.Time) bool {
	return !e.ExpireAt.IsZero() && !now.Before(e.ExpireAt)
}

// Final is true for the statuses that never change: a payment's except pending, and the terminal ones of an SMS.
func (s Status) Final() bool { return s.endsPayment() || s.progress() == terminal }

// endsPayment is true for the final statuses of a payment.
func (s Status) endsPayment() bool {
	return s == Successful || s == Failed || s == Cancelled || s == Expired
}

// StatusFinal is true if the entry's status is final. State is another dimension: a charge that is Done has no status.
func (e *Entry) StatusFinal() bool { return e.Status.Final() }

// NotApplied is true if the entry certainly moved no money: it was refused or released, or it is a payment with a final
// status other than successful.
func (e *Entry) NotApplied() bool {
	return e.State == Refused || e.State == Released || e.Status.endsPayment() && e.Status != Successful
}

// reportedByOperator is true if the operator reported the result other than in its response to our call: a payment's
// final status, or any receipt of an SMS.
func (e *Entry) reportedByOperator() bool {
	switch e.Kind {
	case Payment:
		return e.StatusFinal()
	case SMS:
		return e.Status != ""
	default:
		return false
	}
}

// Clone copies the entry and its lists. Extra is shared, because it is never changed. A nil entry gives nil.
func (e *Entry) Clone() *Entry {
	if e == nil {
		return nil
	}
	c := *e
	c.ResponseBody = slices.Clone(e.ResponseBody)
	c.CallAttempts = slices.Clone(e.CallAttempts)
	c.Conflicts = slices.Clone(e.Conflicts)
	c.Outbox = slices.Clone(e.Outbox)
	c.Delivered = slices.Clone(e.Delivered)
	c.FailedAttempts = slices.Clone(e.FailedAttempts)
	c.Replays = slices.Clone(e.Replays)
	return &c
}

// truncateTimes cuts every time to the stored precision, so that the entry in memory equals the one read back.
func (e *Entry) truncateTimes() {
	times := []*time.Time{
		&e.LeaseUntil, &e.CreatedAt, &e.SentAt, &e.ReservedAt, &e.UpdatedAt, &e.FinalAt, &e.ExpireAt, &e.UserSMSAt,
		&e.PollAt, &e.BindAt, &e.DueAt, &e.Claim.At, &e.Claim.CheckAt, &e.Manual.At,
	}
	for i := range e.CallAttempts {
		times = append(times, &e.CallAttempts[i].At)
	}
	for i := range e.Conflicts {
		times = append(times, &e.Conflicts[i].At)
	}
	for i := range e.FailedAttempts {
		times = append(times, &e.FailedAttempts[i].At)
	}
	for i := range e.Replays {
		times = append(times, &e.Replays[i].At, &e.Replays[i].DeliveredAt)
	}
	for _, list := range [][]Notification{e.Outbox, e.Delivered} {
		for i := range list {
			times = append(times, &list[i].At, &list[i].NextAttemptAt, &list[i].DeliveredAt)
		}
	}
	for _, t := range times {
		*t = Timestamp(*t)
	}
	e.ExpireAt = e.ExpireAt.Truncate(time.Second)
}
