package gatewayctl

import (
	"fmt"
	"time"

	"mobilegateway/shared/ledger"
)

type deliveriesList struct {
	Merchant string `required:"" placeholder:"NAME" help:"The merchant's name or id."`
	From     string `required:"" placeholder:"TIME" help:"Statuses that came at or after this (a UTC day, or RFC 3339)."`
	To       string `required:"" placeholder:"TIME" help:"Statuses that came before this; a day is included."`
	State    string `enum:"all,told,waiting,dead,parked" default:"all" help:"all, told, waiting, dead or parked."`
}

// deliveryView is one notification and where it stands.
type deliveryView struct {
	Kind        ledger.Kind   `json:"kind"`
	ID          string        `json:"id"`
	WebhookID   string        `json:"webhook_id"`
	Status      ledger.Status `json:"status"`
	At          time.Time     `json:"at"`
	State       string        `json:"standing"`
	Attempts    int           `json:"attempts"`
	DeliveredAt time.Time     `json:"told_at,omitzero"`
	Next        time.Time     `json:"next,omitzero"`
	LastError   string        `json:"last_why,omitempty"`
	LastCode    int           `json:"last_code,omitempty"`
	DeadReason  string        `json:"dead,omitempty"`
}

// Run lists the notifications, by the creation of their transactions.
func (c *deliveriesList) Run(s *session) error {
	from, to, err := parseRange(c.From, c.To)
	if err != nil {
		return err
	}
	p, err := s.findMerchant(c.Merchant)
	if err != nil {
		return err
	}
	views := []deliveryView{}
	rows := table{{"AT", "ID", "STATUS", "STANDING", "ATTEMPTS", "TOLD", "NEXT", "LAST FAILURE"}}
	for e, err := range s.entriesBetween(p.ID, from.Add(-replayLookback), to) {
		if err != nil {
			return err
		}
		for _, v := range deliveryViews(e) {
			if v.At.Before(from) || !v.At.Before(to) || c.State != "all" && c.State != v.State {
				continue
			}
			views = append(views, v)
			rows = append(rows, []string{formatTime(v.At), v.ID, string(v.Status), v.State, fmt.Sprint(v.Attempts), formatTime(v.DeliveredAt), formatTime(v.Next), firstNonEmpty(v.DeadReason, v.LastError)})
		}
	}
	return s.show(views, rows)
}

// deliveryViews lists an entry's notifications, the delivered ones first.
func deliveryViews(e *ledger.Entry) []deliveryView {
	var views []deliveryView
	add := func(n ledger.Notification, state string) {
		views = append(views, deliveryView{
			Kind: e.Kind, ID: e.ID, WebhookID: n.ID, Status: n.Status, At: n.At, State: state, Attempts: n.Attempts, DeliveredAt: n.DeliveredAt,
			Next: n.NextAttemptAt, LastError: n.LastReason, LastCode: n.LastStatus, DeadReason: n.DeadReason,
		})
	}
	for _, n := range e.Delivered {
		add(n, "told")
	}
	for _, n := range e.Outbox {
		switch {
		case n.DeadReason != "":
			add(n, "dead")
		case n.Parked:
			add(n, "parked")
		default:
			add(n, "waiting")
		}
	}
	return views
}
