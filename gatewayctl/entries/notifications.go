package entries

import (
	"fmt"
	"slices"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/resource"
)

// The states of a notification.
const (
	DeliveryDelivered  = resource.DeliveryDelivered
	DeliveryWaiting    = resource.DeliveryWaiting
	DeliveryDeadLetter = resource.DeliveryDeadLetter
	DeliveryParked     = resource.DeliveryParked
)

// Notification is a notification of a transaction.
type Notification struct {
	At          time.Time     `json:"at" col:"AT"`
	Kind        ledger.Kind   `json:"kind"`
	ID          string        `json:"id" col:"ID"`
	Status      ledger.Status `json:"status" col:"STATUS"`
	State       string        `json:"state" col:"STATE"`
	Attempts    int           `json:"attempts" col:"ATTEMPTS"`
	DeliveredAt time.Time     `json:"delivered_at,omitzero" col:"DELIVERED"`
	Next        time.Time     `json:"next,omitzero" col:"NEXT"`
	LastError   string        `json:"last_error,omitempty" col:"LAST ERROR"`
	LastCode    int           `json:"last_code,omitempty" col:"LAST CODE"`
	DeadReason  string        `json:"dead_reason,omitempty" col:"DEAD REASON"`
	WebhookID   string        `json:"webhook_id" col:"WEBHOOK-ID"`
}

// Notifications lists an entry's notifications, the delivered ones first.
func Notifications(e *ledger.Entry) []Notification {
	var views []Notification
	for i, n := range slices.Concat(e.Outbox.Delivered, e.Outbox.Waiting) {
		state := DeliveryWaiting
		switch {
		case i < len(e.Outbox.Delivered):
			state = DeliveryDelivered
		case n.DeadReason != "":
			state = DeliveryDeadLetter
		case n.Parked:
			state = DeliveryParked
		}
		views = append(views, Notification{
			Kind: e.Kind, ID: e.ID, WebhookID: n.ID, Status: n.Status, At: n.At, State: state, Attempts: n.Attempts,
			DeliveredAt: n.DeliveredAt, Next: n.NextAttemptAt, LastError: n.LastReason, LastCode: n.LastStatus,
			DeadReason: n.DeadReason,
		})
	}
	return views
}

// Attempt is one delivery attempt.
type Attempt struct {
	WebhookID string        `json:"webhook_id"`
	Status    ledger.Status `json:"status"`
	Number    int           `json:"attempt"`
	At        time.Time     `json:"at"`
	Result    string        `json:"result"` // deliveryDelivered, or why it failed
	Code      int           `json:"code,omitempty"`
}

// Attempts lists an entry's attempts in the order of time, with those before a replay.
func Attempts(e *ledger.Entry) []Attempt {
	views := []Attempt{}
	for _, a := range e.Outbox.FailedAttempts {
		views = append(views, Attempt{
			ledger.NotificationID(e.Key, a.Status), a.Status, a.Number, a.At, a.Reason, a.HTTPStatus,
		})
	}
	for _, r := range e.Outbox.Replays {
		if !r.DeliveredAt.IsZero() {
			id := ledger.NotificationID(e.Key, r.Status)
			views = append(views, Attempt{id, r.Status, r.Attempts, r.DeliveredAt, DeliveryDelivered, 0})
		}
	}
	for _, n := range e.Outbox.Delivered {
		views = append(views, Attempt{n.ID, n.Status, n.Attempts, n.DeliveredAt, DeliveryDelivered, 0})
	}
	slices.SortStableFunc(views, func(a, b Attempt) int { return a.At.Compare(b.At) })
	return views
}

// Replay is one replay of a notification, with its state before. One that was neither delivered nor a dead letter was
// sent now, before its next attempt was due.
type Replay struct {
	WebhookID        string        `json:"webhook_id"`
	Status           ledger.Status `json:"status"`
	At               time.Time     `json:"at"`
	AttemptsBefore   int           `json:"attempts_before"`
	DeliveredBefore  time.Time     `json:"delivered_before,omitzero"`
	DeadReasonBefore string        `json:"dead_reason_before,omitempty"`
}

// Replays lists the replays of an entry.
func Replays(e *ledger.Entry) []Replay {
	return output.MapAll(e.Outbox.Replays, func(r ledger.ReplayRecord) Replay {
		id := ledger.NotificationID(e.Key, r.Status)
		return Replay{id, r.Status, r.At, r.Attempts, r.DeliveredAt, r.DeadReason}
	})
}

// FirstDelivered returns when a status was first delivered, zero for never.
func FirstDelivered(e *ledger.Entry, status ledger.Status) time.Time {
	for _, a := range Attempts(e) {
		if a.Status == status && a.Result == DeliveryDelivered {
			return a.At
		}
	}
	return time.Time{}
}

// NotificationEvents are the events of an entry's notifications: each with its state, each attempt, and each replay.
func NotificationEvents(e *ledger.Entry) []Event {
	var events []Event
	notifications := slices.Concat(e.Outbox.Delivered, e.Outbox.Waiting)
	for i, view := range Notifications(e) {
		event := Event{At: view.At, Event: eventNotification, Outcome: view.State}
		event.Detail = "of " + outboxDetail(notifications[i])
		if first := FirstDelivered(e, view.Status); !first.IsZero() && view.State != DeliveryDelivered {
			event.Detail += ", first delivered at " + output.FormatTime(first)
		}
		events = append(events, event)
	}
	for _, a := range Attempts(e) {
		event := Event{At: a.At, Event: eventDelivery, Outcome: DeliveryDelivered}
		event.Detail = fmt.Sprintf("attempt %d of %s, webhook-id %s", a.Number, a.Status, a.WebhookID)
		if a.Result != DeliveryDelivered {
			event.Outcome = "failed"
			event.Detail = fmt.Sprintf("attempt %d of %s: %s", a.Number, a.Status, FailureText(a.Result, a.Code))
		}
		events = append(events, event)
	}
	for _, r := range Replays(e) {
		event := Event{At: r.At, Event: eventReplay, Outcome: "replayed", By: "a person"}
		event.Detail = fmt.Sprintf("of %s, webhook-id %s, after %s", r.Status, r.WebhookID,
			output.Plural(r.AttemptsBefore, "attempt"))
		switch {
		case r.DeadReasonBefore != "":
			event.Detail += ", dead letter before: " + r.DeadReasonBefore
		case r.DeliveredBefore.IsZero(): // it waited or was parked: nothing is sent again
			event.Outcome = "sent now"
		}
		events = append(events, event)
	}
	return events
}

// outboxDetail describes the state of a notification.
func outboxDetail(n ledger.Notification) string {
	detail := fmt.Sprintf("%s, webhook-id %s, %s made", n.Status, n.ID, output.Plural(n.Attempts, "attempt"))
	if n.LastReason != "" && n.DeliveredAt.IsZero() {
		detail += ", the last: " + FailureText(n.LastReason, n.LastStatus)
	}
	switch {
	case n.DeadReason != "":
		detail += ", dead letter: " + n.DeadReason
	case n.Parked:
		detail += ", parked: the endpoint is disabled"
	case !n.NextAttemptAt.IsZero():
		detail += ", next at " + output.FormatTime(n.NextAttemptAt)
	}
	return detail
}

// FailureText returns why an attempt failed, with the HTTP status if there was a response.
func FailureText(reason string, code int) string {
	if code == 0 {
		return reason
	}
	return fmt.Sprintf("%s %d", reason, code)
}
