// Package deliveries has gatewayctl's commands for the notifications of merchants.
package deliveries

import (
	"cmp"
	"slices"
	"time"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// Commands are the commands below deliveries.
type Commands struct {
	List   deliveriesList   `cmd:"" help:"List a merchant's notifications of today or another time range."`
	Show   deliveriesShow   `cmd:"" help:"Show one transaction's notifications, with each delivery attempt."`
	Send   deliveriesSend   `cmd:"" help:"Send now what waits: of one transaction, or of a merchant."`
	Replay deliveriesReplay `cmd:"" help:"Send notifications again: of one transaction, or of a merchant's time range."`
}

type deliveriesList struct {
	session.MerchantArgument
	session.TimeRange
	State string `enum:"all,delivered,waiting,dead-letter,parked" default:"all" help:"Only: ${enum}."`
}

// Run lists the notifications whose status came in the range, or today, by the creation of their transactions.
func (c *deliveriesList) Run(s *session.Session) error {
	if c.From.IsZero() && c.To.IsZero() {
		today := session.UTCDay{Time: s.Now().UTC().Truncate(session.Day)}
		c.TimeRange = session.DayRange{From: today, To: today}.Times()
	}
	var views []entries.Notification
	for e, err := range entries.InRange(s, c.Name, c.TimeRange, entries.FirstDay) {
		if err != nil {
			return err
		}
		views = append(views, slices.DeleteFunc(entries.Notifications(e), func(v entries.Notification) bool {
			return !c.Contains(v.At) || c.State != "all" && c.State != v.State
		})...)
	}
	return session.ShowList(s, views)
}

type deliveriesShow struct {
	ID string `arg:"" help:"An order_id, or the request id of an SMS."`
}

// Run shows the notifications of one transaction, each attempt and each replay.
func (c *deliveriesShow) Run(s *session.Session) error {
	e, p, err := findNotified(s, c.ID)
	if err != nil {
		return err
	}
	to := destinationOf(e, p)
	notifications := output.MapAll(entries.Notifications(e), func(v entries.Notification) notificationHistoryView {
		return notificationHistoryView{v, entries.FirstDelivered(e, v.Status)}
	})
	h := History{to.URL, to.Former, notifications, entries.Attempts(e), entries.Replays(e)}
	events := entries.NotificationEvents(e)
	entries.SortEvents(events)
	return s.Show(h, slices.Concat(
		output.Table{{"to", cmp.Or(to.String(), "no URL")}, {}}, output.ListRows(h.Notifications), output.Table{{}},
		entries.EventRows(events)))
}

// notificationHistoryView is a notification with its first delivery, which a replay does not change.
type notificationHistoryView struct {
	entries.Notification
	FirstDeliveredAt time.Time `json:"first_delivered_at,omitzero" col:"FIRST DELIVERED"`
}

// History is what happened to the notifications of a transaction.
type History struct {
	NotifyURL     string                    `json:"notify_url"` // of the next attempt
	FormerURL     string                    `json:"former_notify_url,omitempty"`
	Notifications []notificationHistoryView `json:"notifications"`
	Attempts      []entries.Attempt         `json:"attempts"`
	Replays       []entries.Replay          `json:"replays"`
}

func findNotified(s *session.Session, id string) (*ledger.Entry, *merchant.Profile, error) {
	e, err := entries.Find(s, id, ledger.Payment, ledger.SMS, ledger.Charge)
	if err != nil {
		return nil, nil, err
	}
	p, err := s.FindMerchant(e.Merchant.ID)
	return e, p, err
}
