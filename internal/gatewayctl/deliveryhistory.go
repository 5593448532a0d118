package gatewayctl

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"mobilegateway/shared/ledger"
)

type deliveriesShow struct {
	ID string `arg:"" help:"An order_id, or the request id of an SMS."`
}

// resultDelivered is the result of an attempt that the merchant's server took.
const resultDelivered = "delivered"

// attemptView is one attempt at a notification.
type attemptView struct {
	WebhookID string        `json:"webhook_id"`
	Status    ledger.Status `json:"status"`
	Number    int           `json:"attempt"`
	At        time.Time     `json:"at"`
	Result    string        `json:"result"` // "delivered", or why it failed
	Code      int           `json:"code,omitempty"`
}

// replayView is one notification that was sent again by hand, and where it stood before.
type replayView struct {
	WebhookID        string        `json:"webhook_id"`
	Status           ledger.Status `json:"status"`
	At               time.Time     `json:"at"`
	AttemptsBefore   int           `json:"attempts_before"`
	DeliveredBefore  time.Time     `json:"told_before,omitzero"`
	DeadReasonBefore string        `json:"given_up_before,omitempty"`
}

// notificationHistoryView is a notification with its first delivery, which a replay does not undo.
type notificationHistoryView struct {
	deliveryView
	FirstDeliveredAt time.Time `json:"first_told_at,omitzero"`
}

// deliveryHistory is all that is known of a transaction's notifications.
type deliveryHistory struct {
	NotifyURL     string                    `json:"notify_url"`
	Notifications []notificationHistoryView `json:"notifications"`
	Attempts      []attemptView             `json:"attempts"`
	Replays       []replayView              `json:"replays"`
}

// Run shows where the notifications of one transaction stand, each attempt, and each replay.
func (c *deliveriesShow) Run(s *session) error {
	e, err := findNotifiedEntry(s, c.ID)
	if err != nil {
		return err
	}
	h := deliveryHistory{NotifyURL: e.NotifyURL, Notifications: []notificationHistoryView{}, Attempts: attemptViews(e), Replays: replayViews(e)}
	rows := table{{"to", firstNonEmpty(e.NotifyURL, "nobody")}, {}, {"STATUS", "STANDING", "ATTEMPTS", "FIRST TOLD", "TOLD", "NEXT", "WEBHOOK-ID"}}
	for _, v := range deliveryViews(e) {
		view := notificationHistoryView{v, firstDelivered(e, v.Status)}
		h.Notifications = append(h.Notifications, view)
		rows = append(rows, []string{string(v.Status), v.State, strconv.Itoa(v.Attempts), formatTime(view.FirstDeliveredAt), formatTime(v.DeliveredAt), formatTime(v.Next), v.WebhookID})
	}
	rows = append(rows, []string{}, []string{"AT", "STATUS", "ATTEMPT", "RESULT"})
	return s.show(h, append(rows, attemptRows(h)...))
}

// attemptRows are the attempts and the replays in the order of time.
func attemptRows(h deliveryHistory) table {
	type line struct {
		at  time.Time
		row []string
	}
	var lines []line
	for _, a := range h.Attempts {
		lines = append(lines, line{a.At, []string{formatTime(a.At), string(a.Status), strconv.Itoa(a.Number), failureText(a.Result, a.Code)}})
	}
	for _, r := range h.Replays {
		lines = append(lines, line{r.At, []string{formatTime(r.At), string(r.Status), "", "replayed" + r.deadReasonText()}})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	var rows table
	for _, l := range lines {
		rows = append(rows, l.row)
	}
	return rows
}

// deadReasonText says what the replay found given up.
func (r replayView) deadReasonText() string {
	if r.DeadReasonBefore == "" {
		return ""
	}
	return ", given up before: " + r.DeadReasonBefore
}

// attemptViews lists an entry's attempts in the order of time, those before a replay included.
func attemptViews(e *ledger.Entry) []attemptView {
	views := []attemptView{}
	for _, a := range e.FailedAttempts {
		views = append(views, attemptView{ledger.NotificationID(e.Key, a.Status), a.Status, a.Number, a.At, a.Reason, a.HTTPStatus})
	}
	for _, r := range e.Replays {
		if !r.DeliveredAt.IsZero() {
			views = append(views, attemptView{ledger.NotificationID(e.Key, r.Status), r.Status, r.Attempts, r.DeliveredAt, resultDelivered, 0})
		}
	}
	for _, n := range e.Delivered {
		views = append(views, attemptView{n.ID, n.Status, n.Attempts, n.DeliveredAt, resultDelivered, 0})
	}
	slices.SortStableFunc(views, func(a, b attemptView) int { return a.At.Compare(b.At) })
	return views
}

// replayViews lists an entry's replays, which stand in the order of time.
func replayViews(e *ledger.Entry) []replayView {
	views := []replayView{}
	for _, r := range e.Replays {
		views = append(views, replayView{ledger.NotificationID(e.Key, r.Status), r.Status, r.At, r.Attempts, r.DeliveredAt, r.DeadReason})
	}
	return views
}

// firstDelivered is when the merchant was first told of a status, zero for never.
func firstDelivered(e *ledger.Entry, status ledger.Status) time.Time {
	for _, a := range attemptViews(e) {
		if a.Status == status && a.Result == resultDelivered {
			return a.At
		}
	}
	return time.Time{}
}

// notificationEvents are the events of an entry's notifications: each attempt, each replay, and what is still to be told.
func notificationEvents(e *ledger.Entry) []historyEvent {
	var events []historyEvent
	for _, a := range attemptViews(e) {
		if a.Result == resultDelivered {
			events = append(events, historyEvent{a.At, "told", fmt.Sprintf("%s, webhook-id %s, attempt %d", a.Status, a.WebhookID, a.Number)})
		} else {
			events = append(events, historyEvent{a.At, "not told", fmt.Sprintf("%s, attempt %d: %s", a.Status, a.Number, failureText(a.Result, a.Code))})
		}
	}
	for _, r := range replayViews(e) {
		detail := fmt.Sprintf("%s, webhook-id %s, after %s%s", r.Status, r.WebhookID, plural(r.AttemptsBefore, "attempt"), r.deadReasonText())
		events = append(events, historyEvent{r.At, "replayed", detail})
	}
	for _, n := range e.Outbox {
		detail := outboxDetail(n)
		if first := firstDelivered(e, n.Status); !first.IsZero() {
			detail += ", told before, first at " + formatTime(first)
		}
		events = append(events, historyEvent{n.At, "to be told", detail})
	}
	return events
}

// findNotifiedEntry finds the payment or the SMS with an id.
func findNotifiedEntry(s *session, id string) (*ledger.Entry, error) {
	stores, err := s.openStores()
	if err != nil {
		return nil, err
	}
	for _, kind := range []ledger.Kind{ledger.Payment, ledger.SMS} {
		e, err := stores.Ledger.Get(s, ledger.Key{Kind: kind, ID: id})
		if err != nil || e != nil {
			return e, err
		}
	}
	return nil, fmt.Errorf("there is no payment and no SMS %s", id)
}
