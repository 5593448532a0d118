package gatewayctl

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

type deliveriesCommands struct {
	List   deliveriesList   `cmd:"" help:"List a merchant's notifications of today or another time range."`
	Show   deliveriesShow   `cmd:"" help:"Show one transaction's notifications, with each delivery attempt."`
	Send   deliveriesSend   `cmd:"" help:"Send now what waits: of one transaction, or of a merchant."`
	Replay deliveriesReplay `cmd:"" help:"Send notifications again: of one transaction, or of a merchant's time range."`
}

const (
	deliveryDelivered  = "delivered"
	deliveryWaiting    = "waiting"
	deliveryDeadLetter = "dead-letter"
	deliveryParked     = "parked"
)

type deliveriesList struct {
	merchantArgument
	timeRange
	State string `enum:"all,delivered,waiting,dead-letter,parked" default:"all" help:"Only: ${enum}."`
}

type deliveryView struct {
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

// Run lists the notifications whose status came in the range, or today, by the creation of their transactions.
func (c *deliveriesList) Run(s *session) error {
	if c.From.IsZero() && c.To.IsZero() {
		today := utcDay{s.Now().UTC().Truncate(day)}
		c.timeRange = dayRange{today, today}.times()
	}
	var views []deliveryView
	for e, err := range entriesInRange(s, c.Name, c.timeRange, firstDay) {
		if err != nil {
			return err
		}
		views = append(views, slices.DeleteFunc(deliveryViews(e), func(v deliveryView) bool {
			return !c.contains(v.At) || c.State != "all" && c.State != v.State
		})...)
	}
	return showList(s, views)
}

// deliveryViews lists an entry's notifications, the delivered ones first.
func deliveryViews(e *ledger.Entry) []deliveryView {
	var views []deliveryView
	for i, n := range slices.Concat(e.Delivered, e.Outbox) {
		state := deliveryWaiting
		switch {
		case i < len(e.Delivered):
			state = deliveryDelivered
		case n.DeadReason != "":
			state = deliveryDeadLetter
		case n.Parked:
			state = deliveryParked
		}
		views = append(views, deliveryView{
			Kind: e.Kind, ID: e.ID, WebhookID: n.ID, Status: n.Status, At: n.At, State: state, Attempts: n.Attempts,
			DeliveredAt: n.DeliveredAt, Next: n.NextAttemptAt, LastError: n.LastReason, LastCode: n.LastStatus,
			DeadReason: n.DeadReason,
		})
	}
	return views
}

type deliveriesShow struct {
	ID string `arg:"" help:"An order_id, or the request id of an SMS."`
}

type attemptView struct {
	WebhookID string        `json:"webhook_id"`
	Status    ledger.Status `json:"status"`
	Number    int           `json:"attempt"`
	At        time.Time     `json:"at"`
	Result    string        `json:"result"` // deliveryDelivered, or why it failed
	Code      int           `json:"code,omitempty"`
}

// replayView is one replay of a notification, with its state before.
type replayView struct {
	WebhookID        string        `json:"webhook_id"`
	Status           ledger.Status `json:"status"`
	At               time.Time     `json:"at"`
	AttemptsBefore   int           `json:"attempts_before"`
	DeliveredBefore  time.Time     `json:"delivered_before,omitzero"`
	DeadReasonBefore string        `json:"dead_reason_before,omitempty"`
}

// notificationHistoryView is a notification with its first delivery, which a replay does not change.
type notificationHistoryView struct {
	deliveryView
	FirstDeliveredAt time.Time `json:"first_delivered_at,omitzero" col:"FIRST DELIVERED"`
}

type deliveryHistory struct {
	NotifyURL     string                    `json:"notify_url"` // of the next attempt
	FormerURL     string                    `json:"former_notify_url,omitempty"`
	Notifications []notificationHistoryView `json:"notifications"`
	Attempts      []attemptView             `json:"attempts"`
	Replays       []replayView              `json:"replays"`
}

// Run shows the notifications of one transaction, each attempt and each replay.
func (c *deliveriesShow) Run(s *session) error {
	e, p, err := findNotified(s, c.ID)
	if err != nil {
		return err
	}
	to := destinationOf(e, p)
	notifications := mapAll(deliveryViews(e), func(v deliveryView) notificationHistoryView {
		return notificationHistoryView{v, firstDelivered(e, v.Status)}
	})
	h := deliveryHistory{to.URL, to.Former, notifications, attemptViews(e), replayViews(e)}
	events := notificationEvents(e)
	sortEvents(events)
	return s.show(h, slices.Concat(
		table{{"to", cmp.Or(to.String(), "no URL")}, {}}, listRows(h.Notifications), table{{}}, eventRows(events)))
}

func findNotified(s *session, id string) (*ledger.Entry, *merchant.Profile, error) {
	e, err := findEntry(s, id, ledger.Payment, ledger.SMS, ledger.Charge)
	if err != nil {
		return nil, nil, err
	}
	p, err := s.findMerchant(e.MerchantID)
	return e, p, err
}

// attemptViews lists an entry's attempts in the order of time, with those before a replay.
func attemptViews(e *ledger.Entry) []attemptView {
	views := []attemptView{}
	for _, a := range e.FailedAttempts {
		views = append(views, attemptView{
			ledger.NotificationID(e.Key, a.Status), a.Status, a.Number, a.At, a.Reason, a.HTTPStatus,
		})
	}
	for _, r := range e.Replays {
		if !r.DeliveredAt.IsZero() {
			id := ledger.NotificationID(e.Key, r.Status)
			views = append(views, attemptView{id, r.Status, r.Attempts, r.DeliveredAt, deliveryDelivered, 0})
		}
	}
	for _, n := range e.Delivered {
		views = append(views, attemptView{n.ID, n.Status, n.Attempts, n.DeliveredAt, deliveryDelivered, 0})
	}
	slices.SortStableFunc(views, func(a, b attemptView) int { return a.At.Compare(b.At) })
	return views
}

func replayViews(e *ledger.Entry) []replayView {
	return mapAll(e.Replays, func(r ledger.ReplayRecord) replayView {
		id := ledger.NotificationID(e.Key, r.Status)
		return replayView{id, r.Status, r.At, r.Attempts, r.DeliveredAt, r.DeadReason}
	})
}

// firstDelivered returns when a status was first delivered, zero for never.
func firstDelivered(e *ledger.Entry, status ledger.Status) time.Time {
	for _, a := range attemptViews(e) {
		if a.Status == status && a.Result == deliveryDelivered {
			return a.At
		}
	}
	return time.Time{}
}

// notificationEvents are the events of an entry's notifications: each attempt, each replay, and each that is still due.
func notificationEvents(e *ledger.Entry) []historyEvent {
	var events []historyEvent
	for _, a := range attemptViews(e) {
		what, detail := "delivered", fmt.Sprintf("%s, webhook-id %s, attempt %d", a.Status, a.WebhookID, a.Number)
		if a.Result != deliveryDelivered {
			what = "delivery attempt failed"
			detail = fmt.Sprintf("%s, attempt %d: %s", a.Status, a.Number, failureText(a.Result, a.Code))
		}
		events = append(events, historyEvent{a.At, what, detail})
	}
	for _, r := range replayViews(e) {
		detail := fmt.Sprintf("%s, webhook-id %s, after %s", r.Status, r.WebhookID, plural(r.AttemptsBefore, "attempt"))
		if r.DeadReasonBefore != "" {
			detail += ", dead letter before: " + r.DeadReasonBefore
		}
		events = append(events, historyEvent{r.At, "replayed", detail})
	}
	for _, n := range e.Outbox {
		detail := outboxDetail(n)
		if first := firstDelivered(e, n.Status); !first.IsZero() {
			detail += ", first delivered at " + formatTime(first)
		}
		events = append(events, historyEvent{n.At, "delivery due", detail})
	}
	return events
}

// outboxDetail describes the state of a notification that is not delivered.
func outboxDetail(n ledger.Notification) string {
	detail := fmt.Sprintf("%s, webhook-id %s, %s made", n.Status, n.ID, plural(n.Attempts, "attempt"))
	if n.LastReason != "" {
		detail += ", the last: " + failureText(n.LastReason, n.LastStatus)
	}
	switch {
	case n.DeadReason != "":
		detail += ", dead letter: " + n.DeadReason
	case n.Parked:
		detail += ", parked: the endpoint is disabled"
	case !n.NextAttemptAt.IsZero():
		detail += ", next at " + formatTime(n.NextAttemptAt)
	}
	return detail
}

// failureText returns why an attempt failed, with the HTTP status if there was a response.
func failureText(reason string, code int) string {
	if code == 0 {
		return reason
	}
	return fmt.Sprintf("%s %d", reason, code)
}
