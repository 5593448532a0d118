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

// attemptView is one attempt at a notification.
type attemptView struct {
	Webhook string        `json:"webhook_id"`
	Status  ledger.Status `json:"status"`
	Number  int           `json:"attempt"`
	At      time.Time     `json:"at"`
	Result  string        `json:"result"` // "delivered", or why it failed
	Code    int           `json:"code,omitempty"`
}

// deliveryHistory is all that is known of a transaction's notifications.
type deliveryHistory struct {
	NotifyURL     string         `json:"notify_url"`
	Notifications []deliveryView `json:"notifications"`
	Attempts      []attemptView  `json:"attempts"`
}

// Run shows where the notifications of one transaction stand, and each attempt.
func (c *deliveriesShow) Run(s *session) error {
	e, err := notified(s, c.ID)
	if err != nil {
		return err
	}
	h := deliveryHistory{NotifyURL: e.NotifyURL, Notifications: []deliveryView{}, Attempts: attemptsOf(e)}
	h.Notifications = append(h.Notifications, deliveriesOf(e)...)
	rows := table{{"to", or(e.NotifyURL, "nobody")}, {}, {"STATUS", "STANDING", "ATTEMPTS", "TOLD", "NEXT", "WEBHOOK-ID"}}
	for _, v := range h.Notifications {
		rows = append(rows, []string{string(v.Status), v.Standing, strconv.Itoa(v.Attempts), moment(v.ToldAt), moment(v.Next), v.Webhook})
	}
	rows = append(rows, []string{}, []string{"AT", "STATUS", "ATTEMPT", "RESULT"})
	for _, a := range h.Attempts {
		rows = append(rows, []string{moment(a.At), string(a.Status), strconv.Itoa(a.Number), failure(a.Result, a.Code)})
	}
	return s.show(h, rows)
}

// attemptsOf lists an entry's attempts in the order of time.
func attemptsOf(e *ledger.Entry) []attemptView {
	views := []attemptView{}
	for _, a := range e.Attempts {
		views = append(views, attemptView{ledger.NotificationID(e.Key, a.Status), a.Status, a.Number, a.At, a.Why, a.Code})
	}
	for _, n := range e.Told {
		views = append(views, attemptView{n.ID, n.Status, n.Attempt, n.ToldAt, "delivered", 0})
	}
	slices.SortStableFunc(views, func(a, b attemptView) int { return a.At.Compare(b.At) })
	return views
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
