package ledger

import "time"

// State is where our call of the operator is.
type State string

// The states. Reserved already means "may have been sent".
const (
	Reserved State = "reserved" // an attempt owns it until LeaseUntil; after that it counts as unknown
	Done     State = "done"     // the operator applied it, or accepted it (payment)
	Refused  State = "refused"  // the operator refused it permanently
	Unknown  State = "unknown"  // it may have been applied
	Released State = "released" // it was certainly not applied; the same request may come again
)

// Status is what the merchant is notified of: a payment's status, or an SMS's delivery status. A charge has none.
type Status string

// Payment statuses (decision "pay-statuses"): pending, then exactly one of the others.
const (
	Pending    Status = "pending"
	Successful Status = "successful"
	Failed     Status = "failed"
	Cancelled  Status = "cancelled"
	Expired    Status = "expired"
)

// SMS delivery statuses (OMA SMS; decision "sms-receipts").
const (
	MessageWaiting      Status = "MessageWaiting"
	DeliveredToNetwork  Status = "DeliveredToNetwork"
	DeliveredToTerminal Status = "DeliveredToTerminal"
	DeliveryUncertain   Status = "DeliveryUncertain"
	DeliveryImpossible  Status = "DeliveryImpossible"
	NotificationNotSupp Status = "DeliveryNotificationNotSupported"
)

// Final is true for the statuses that never change: a payment's except pending, and the terminal ones of an SMS.
func (s Status) Final() bool { return s.endsPayment() || s.progress() == terminal }

// endsPayment is true for the final statuses of a payment.
func (s Status) endsPayment() bool {
	return s == Successful || s == Failed || s == Cancelled || s == Expired
}

// terminal is the progress of the final statuses of an SMS.
const terminal = 3

// progress orders the delivery statuses of an SMS: it only ever grows. 0: not a delivery status.
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

// Timestamp converts a time to the stored form: UTC, in whole milliseconds.
func Timestamp(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}
