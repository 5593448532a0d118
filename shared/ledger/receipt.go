package ledger

import "time"

// ApplyReceipts applies delivery receipts in their order, and reports whether one of them changed the entry.
func (e *Entry) ApplyReceipts(statuses []Status, now time.Time) bool {
	changed := false
	for _, status := range statuses {
		changed = e.ApplyReceipt(status, now) == Applied || changed
	}
	return changed
}

// The waits before the next attempt to bind a message grow with its age, between these bounds.
const (
	FirstBindWait = time.Minute
	maxBindWait   = time.Hour
)

// BindDue is true if an SMS is due to be bound to its operator's id.
func (e *Entry) BindDue(now time.Time) bool { return reached(e.BindAt, now) }

// ClaimBind claims an attempt to bind an SMS by moving the next one, and returns false if none is due.
func (e *Entry) ClaimBind(now time.Time) bool {
	if !e.BindDue(now) {
		return false
	}
	e.BindAt = now.Add(min(max(now.Sub(e.SentAt), FirstBindWait), maxBindWait))
	return true
}

// RecordBound ends the attempts to bind an SMS, and applies the receipts that came before. It returns whether the entry
// changed.
func (e *Entry) RecordBound(early []Status, now time.Time) bool {
	changed := e.ApplyReceipts(early, now) || !e.BindAt.IsZero()
	e.BindAt = time.Time{}
	return changed
}

// ApplyReceipt applies an operator's delivery receipt (decision "sms-receipts"). A further status is Applied, and goes
// to the outbox once if the merchant requested receipts. The same status, a step back, and any status after a final one
// are Unchanged. It may come before the response to our own call. A receipt proves that the message was sent, so an
// unknown or released message becomes Done.
func (e *Entry) ApplyReceipt(status Status, now time.Time) Effect {
	if e.Kind != SMS || status.progress() <= e.Status.progress() {
		return Unchanged
	}
	e.Status = status
	if status.Final() {
		e.FinalAt = now
	}
	if e.State == Unknown || e.State == Released || e.LeaseLapsed(now) {
		e.State, e.Poll.At = Done, time.Time{}
	}
	e.Outbox.enqueue(e.Key, status, now)
	return Applied
}
