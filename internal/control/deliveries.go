package control

import (
	"fmt"
	"time"

	"mobilegateway/shared/ledger"
)

type deliveriesList struct {
	Merchant string `required:"" placeholder:"NAME" help:"The merchant's name or id."`
	From     string `required:"" placeholder:"TIME" help:"Statuses that came at or after this (a UTC day, or RFC 3339)."`
	To       string `required:"" placeholder:"TIME" help:"Statuses that came before this; a day is included."`
	Standing string `enum:"all,told,waiting,dead,parked" default:"all" help:"all, told, waiting, dead or parked."`
}

// deliveryView is one notification and where it stands.
type deliveryView struct {
	Kind     ledger.Kind   `json:"kind"`
	ID       string        `json:"id"`
	Webhook  string        `json:"webhook_id"`
	Status   ledger.Status `json:"status"`
	At       time.Time     `json:"at"`
	Standing string        `json:"standing"`
	Attempts int           `json:"attempts"`
	ToldAt   time.Time     `json:"told_at,omitzero"`
	Next     time.Time     `json:"next,omitzero"`
	LastWhy  string        `json:"last_why,omitempty"`
	LastCode int           `json:"last_code,omitempty"`
	Dead     string        `json:"dead,omitempty"`
}

// Run lists the notifications, by the creation of their transactions.
func (c *deliveriesList) Run(s *session) error {
	from, to, err := parseRange(c.From, c.To)
	if err != nil {
		return err
	}
	p, err := s.merchant(c.Merchant)
	if err != nil {
		return err
	}
	views := []deliveryView{}
	rows := table{{"AT", "ID", "STATUS", "STANDING", "ATTEMPTS", "TOLD", "NEXT", "LAST FAILURE"}}
	for e, err := range s.days(p.ID, from.Add(-lookback), to) {
		if err != nil {
			return err
		}
		for _, v := range deliveriesOf(e) {
			if v.At.Before(from) || !v.At.Before(to) || c.Standing != "all" && c.Standing != v.Standing {
				continue
			}
			views = append(views, v)
			rows = append(rows, []string{moment(v.At), v.ID, string(v.Status), v.Standing, fmt.Sprint(v.Attempts), moment(v.ToldAt), moment(v.Next), or(v.Dead, v.LastWhy)})
		}
	}
	return s.show(views, rows)
}

// deliveriesOf lists an entry's notifications, the delivered ones first.
func deliveriesOf(e *ledger.Entry) []deliveryView {
	var views []deliveryView
	add := func(n ledger.Notification, standing string) {
		views = append(views, deliveryView{
			Kind: e.Kind, ID: e.ID, Webhook: n.ID, Status: n.Status, At: n.At, Standing: standing, Attempts: n.Attempt, ToldAt: n.ToldAt,
			Next: n.Next, LastWhy: n.LastWhy, LastCode: n.LastCode, Dead: n.Dead,
		})
	}
	for _, n := range e.Told {
		add(n, "told")
	}
	for _, n := range e.Outbox {
		switch {
		case n.Dead != "":
			add(n, "dead")
		case n.Parked:
			add(n, "parked")
		default:
			add(n, "waiting")
		}
	}
	return views
}
