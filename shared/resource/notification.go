package resource

import (
	"slices"
	"time"

	"mobilegateway/shared/ledger"
)

// The states of a notification's delivery.
const (
	DeliveryDelivered  = "delivered"
	DeliveryWaiting    = "waiting"     // for its first or its next attempt
	DeliveryDeadLetter = "dead-letter" // its attempts are used up
	DeliveryParked     = "parked"      // its endpoint is disabled
)

// Notification is a notification as its merchant sees it. NextAttemptAt is a lower bound. It is zero before the first
// attempt, which comes within two minutes, and while the notification is parked.
type Notification struct {
	WebhookID     string        `json:"webhook_id"`
	Status        ledger.Status `json:"status"`
	State         string        `json:"state"`
	Attempts      int           `json:"attempts"`
	DeliveredAt   time.Time     `json:"delivered_at,omitzero"`
	NextAttemptAt time.Time     `json:"next_attempt_at,omitzero"`
	LastResponse  int           `json:"last_response,omitempty"` // HTTP status of the last failed attempt
	DeadReason    string        `json:"dead_reason,omitempty"`
}

// Notifications lists an entry's notifications, the delivered ones first.
func Notifications(e *ledger.Entry) []Notification {
	views := []Notification{}
	for i, n := range slices.Concat(e.Outbox.Delivered, e.Outbox.Waiting) {
		view := Notification{
			WebhookID: n.ID, Status: n.Status, State: deliveryState(n, i < len(e.Outbox.Delivered)),
			Attempts: n.Attempts, DeliveredAt: n.DeliveredAt, LastResponse: n.LastStatus, DeadReason: n.DeadReason,
		}
		if n.Attempts > 0 && !n.Parked {
			view.NextAttemptAt = n.NextAttemptAt
		}
		views = append(views, view)
	}
	return views
}

func deliveryState(n ledger.Notification, delivered bool) string {
	switch {
	case delivered:
		return DeliveryDelivered
	case n.DeadReason != "":
		return DeliveryDeadLetter
	case n.Parked:
		return DeliveryParked
	default:
		return DeliveryWaiting
	}
}
