package ledger

import "time"

// terminal is the progress of the statuses that an SMS ends in.
const terminal = 3

// progress orders the delivery statuses of an SMS: it only ever grows. 0 is no such status.
func (s Status) progress() int {
	switch s {
	case MessageWaiting:
		return 1
	case DeliveredToNetwork:
		return 2
	case DeliveredToTerminal, DeliveryUncertain, DeliveryImpossible, NotificationNotSupp:
		return terminal
	default:
		return 0
	}
}

// ApplyReceipt applies an operator's delivery receipt (decision "sms-receipts"). A status further on is Applied and appended
// to the outbox once, if the merchant asked for receipts; the same status, a step back, and anything after a terminal
// status is Same. It may come before our own answer. A message that a receipt comes for was sent: an unknown or released
// one becomes Done.
func (e *Entry) ApplyReceipt(status Status, now time.Time) Effect {
	if e.Kind != SMS || status.progress() <= e.Status.progress() {
		return Unchanged
	}
	e.Status = status
	if status.Final() {
		e.FinalAt = now
	}
	if e.State == Unknown || e.State == Released || e.LeaseLapsed(now) {
		e.State, e.PollAt = Done, time.Time{}
	}
	e.enqueue(status, now)
	e.Reschedule()
	return Applied
}
