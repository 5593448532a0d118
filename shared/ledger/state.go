package ledger

import (
	"slices"
	"time"
)

// Moment is a time as entries hold it: UTC, in whole milliseconds.
func Moment(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// Live is true while an attempt holds the reservation: another one must wait.
func (e *Entry) Live(now time.Time) bool { return e.State == Reserved && now.Before(e.LeaseUntil) }

// Lapsed is true where the reservation's lease has ended and nobody has said what came of it: it counts as unknown.
func (e *Entry) Lapsed(now time.Time) bool { return e.State == Reserved && !now.Before(e.LeaseUntil) }

// Expired is true from ExpireAt on: the entry counts as absent, whether or not the table has deleted it yet.
func (e *Entry) Expired(now time.Time) bool { return !e.ExpireAt.IsZero() && !now.Before(e.ExpireAt) }

// Final is true for the statuses that never change: a payment's but pending, and the terminal ones of an SMS.
func (s Status) Final() bool { return s.endsPayment() || s.progress() == terminal }

// endsPayment is true for the statuses that a payment ends in.
func (s Status) endsPayment() bool {
	return s == Successful || s == Failed || s == Cancelled || s == Expired
}

// Settled is true where the entry's status is final.
func (e *Entry) Settled() bool { return e.Status.Final() }

// NotApplied is true where the entry certainly moved no money: it was refused or released, or it is a payment that ended
// otherwise than successfully.
func (e *Entry) NotApplied() bool {
	return e.State == Refused || e.State == Released || e.Status.endsPayment() && e.Status != Successful
}

// reported is true where the operator itself has reported what became of the entry, beside its answer to our call: a
// payment's final status, or any receipt of an SMS.
func (e *Entry) reported() bool {
	switch e.Kind {
	case Payment:
		return e.Settled()
	case SMS:
		return e.Status != ""
	default:
		return false
	}
}

// Clone copies the entry with all it holds. Extra is shared: nobody changes it.
func (e *Entry) Clone() *Entry {
	if e == nil {
		return nil
	}
	c := *e
	c.AnswerBody = slices.Clone(e.AnswerBody)
	c.Conflicts = slices.Clone(e.Conflicts)
	c.Outbox = slices.Clone(e.Outbox)
	c.Told = slices.Clone(e.Told)
	c.Attempts = slices.Clone(e.Attempts)
	c.Replays = slices.Clone(e.Replays)
	return &c
}

// normalise brings every time into the precision that is stored, so that an entry in hand equals the one read back.
func (e *Entry) normalise() {
	times := []*time.Time{
		&e.LeaseUntil, &e.CreatedAt, &e.SentAt, &e.ReservedAt, &e.UpdatedAt, &e.FinalAt, &e.ExpireAt, &e.UserSMSAt, &e.PollAt, &e.Due,
		&e.Claim.At, &e.Claim.Due, &e.Word.At,
	}
	for i := range e.Conflicts {
		times = append(times, &e.Conflicts[i].At)
	}
	for i := range e.Attempts {
		times = append(times, &e.Attempts[i].At)
	}
	for i := range e.Replays {
		times = append(times, &e.Replays[i].At, &e.Replays[i].ToldAt)
	}
	for _, list := range [][]Notification{e.Outbox, e.Told} {
		for i := range list {
			times = append(times, &list[i].At, &list[i].Next, &list[i].ToldAt)
		}
	}
	for _, t := range times {
		*t = Moment(*t)
	}
	if !e.ExpireAt.IsZero() {
		e.ExpireAt = e.ExpireAt.Truncate(time.Second)
	}
}
