package control

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

// delivered is the result of an attempt that the merchant's server took.
const delivered = "delivered"

// attemptView is one attempt at a notification.
type attemptView struct {
	Webhook string        `json:"webhook_id"`
	Status  ledger.Status `json:"status"`
	Number  int           `json:"attempt"`
	At      time.Time     `json:"at"`
	Result  string        `json:"result"` // "delivered", or why it failed
	Code    int           `json:"code,omitempty"`
}

// replayView is one notification that was sent again by hand, and where it stood before.
type replayView struct {
	Webhook  string        `json:"webhook_id"`
	Status   ledger.Status `json:"status"`
	At       time.Time     `json:"at"`
	Attempts int           `json:"attempts_before"`
	ToldAt   time.Time     `json:"told_before,omitzero"`
	GivenUp  string        `json:"given_up_before,omitempty"`
}

// standingView is a notification with its first delivery, which a replay does not undo.
type standingView struct {
	deliveryView
	FirstToldAt time.Time `json:"first_told_at,omitzero"`
}

// deliveryHistory is all that is known of a transaction's notifications.
type deliveryHistory struct {
	NotifyURL     string         `json:"notify_url"`
	Notifications []standingView `json:"notifications"`
	Attempts      []attemptView  `json:"attempts"`
	Replays       []replayView   `json:"replays"`
}

// Run shows where the notifications of one transaction stand, each attempt, and each replay.
func (c *deliveriesShow) Run(s *session) error {
	e, err := notified(s, c.ID)
	if err != nil {
		return err
	}
	h := deliveryHistory{NotifyURL: e.NotifyURL, Notifications: []standingView{}, Attempts: attemptsOf(e), Replays: replaysOf(e)}
	rows := table{{"to", or(e.NotifyURL, "nobody")}, {}, {"STATUS", "STANDING", "ATTEMPTS", "FIRST TOLD", "TOLD", "NEXT", "WEBHOOK-ID"}}
	for _, v := range deliveriesOf(e) {
		view := standingView{v, firstTold(e, v.Status)}
		h.Notifications = append(h.Notifications, view)
		rows = append(rows, []string{string(v.Status), v.Standing, strconv.Itoa(v.Attempts), moment(view.FirstToldAt), moment(v.ToldAt), moment(v.Next), v.Webhook})
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
		lines = append(lines, line{a.At, []string{moment(a.At), string(a.Status), strconv.Itoa(a.Number), failure(a.Result, a.Code)}})
	}
	for _, r := range h.Replays {
		lines = append(lines, line{r.At, []string{moment(r.At), string(r.Status), "", "replayed" + r.before()}})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	var rows table
	for _, l := range lines {
		rows = append(rows, l.row)
	}
	return rows
}

// before says what the replay found given up.
func (r replayView) before() string {
	if r.GivenUp == "" {
		return ""
	}
	return ", given up before: " + r.GivenUp
}

// attemptsOf lists an entry's attempts in the order of time, those before a replay included.
func attemptsOf(e *ledger.Entry) []attemptView {
	views := []attemptView{}
	for _, a := range e.Attempts {
		views = append(views, attemptView{ledger.NotificationID(e.Key, a.Status), a.Status, a.Number, a.At, a.Why, a.Code})
	}
	for _, r := range e.Replays {
		if !r.ToldAt.IsZero() {
			views = append(views, attemptView{ledger.NotificationID(e.Key, r.Status), r.Status, r.Attempt, r.ToldAt, delivered, 0})
		}
	}
	for _, n := range e.Told {
		views = append(views, attemptView{n.ID, n.Status, n.Attempt, n.ToldAt, delivered, 0})
	}
	slices.SortStableFunc(views, func(a, b attemptView) int { return a.At.Compare(b.At) })
	return views
}

// replaysOf lists an entry's replays, which stand in the order of time.
func replaysOf(e *ledger.Entry) []replayView {
	views := []replayView{}
	for _, r := range e.Replays {
		views = append(views, replayView{ledger.NotificationID(e.Key, r.Status), r.Status, r.At, r.Attempt, r.ToldAt, r.Dead})
	}
	return views
}

// firstTold is when the merchant was first told of a status, zero for never.
func firstTold(e *ledger.Entry, status ledger.Status) time.Time {
	for _, a := range attemptsOf(e) {
		if a.Status == status && a.Result == delivered {
			return a.At
		}
	}
	return time.Time{}
}

// tellings are the events of an entry's notifications: each attempt, each replay, and what is still to be told.
func tellings(e *ledger.Entry) []event {
	var events []event
	for _, a := range attemptsOf(e) {
		if a.Result == delivered {
			events = append(events, event{a.At, "told", fmt.Sprintf("%s, webhook-id %s, attempt %d", a.Status, a.Webhook, a.Number)})
		} else {
			events = append(events, event{a.At, "not told", fmt.Sprintf("%s, attempt %d: %s", a.Status, a.Number, failure(a.Result, a.Code))})
		}
	}
	for _, r := range replaysOf(e) {
		detail := fmt.Sprintf("%s, webhook-id %s, after %s%s", r.Status, r.Webhook, plural(r.Attempts, "attempt"), r.before())
		events = append(events, event{r.At, "replayed", detail})
	}
	for _, n := range e.Outbox {
		detail := outboxDetail(n)
		if first := firstTold(e, n.Status); !first.IsZero() {
			detail += ", told before, first at " + moment(first)
		}
		events = append(events, event{n.At, "to be told", detail})
	}
	return events
}

// notified finds the payment or the SMS with an id.
func notified(s *session, id string) (*ledger.Entry, error) {
	stores, err := s.open()
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
