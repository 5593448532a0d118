// Package deliveries has gatewayctl's commands for the notifications of merchants.
package deliveries

import (
	"cmp"
	"errors"
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
	session.WatchFlag
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
	ID string `arg:"" help:"An order_id, or the id of a charge or an SMS."`
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

type deliveriesSend struct {
	ID       string `arg:"" optional:"" help:"An order_id, or the id of a charge or an SMS."`
	Merchant string `placeholder:"NAME" help:"Instead of the id: the merchant's name or id, with --since."`

	Since session.Moment `placeholder:"TIME" help:"${send_since_help}"`
	addressFlags
}

// Run queues the notifications that wait for a later attempt, and those that are parked at an enabled endpoint. It
// opens the fast path of the servers first, so that the relay posts within seconds.
func (c *deliveriesSend) Run(s *session.Session) error {
	if (c.ID == "") == (c.Merchant == "") || (c.Merchant == "") != c.Since.IsZero() {
		return output.UsageError(`expected "<id>", or --merchant with --since`)
	}
	since := session.TimeRange{From: c.Since, To: session.Moment{Time: s.Now().Add(time.Minute)}}
	send := resend{
		addressFlags: c.addressFlags, action: "send deliveries now", id: c.ID, nameOrID: c.Merchant,
		opensFastPaths: true,
		wanted: func(e *ledger.Entry) bool {
			return e.Outbox.Waits(ledger.Timestamp(s.Now())) && (c.ID != "" || since.Contains(e.Outbox.Head().At))
		},
		change: func(e *ledger.Entry, now time.Time) ledger.Transition {
			return ledger.SendNow.If(e.Outbox.SendNow(now))
		},
		errEmpty: errors.New("nothing waits that does not go within a minute anyway: deliveries show lists a " +
			"transaction's notifications, deliveries replay sends dead letters and delivered ones again"),
	}
	return send.run(s, since, "since "+output.FormatTime(c.Since.Time))
}

type deliveriesReplay struct {
	ID       string `arg:"" optional:"" help:"An order_id, or the id of a charge or an SMS."`
	Merchant string `placeholder:"NAME" help:"Instead of the id: the merchant's name or id, with --from and --to."`
	session.TimeRange
	DeadLetters bool `help:"Only dead letters, not what was delivered."`
	addressFlags
}

// Run queues the notifications again, each with its own webhook-id. It skips those that wait for an attempt.
func (c *deliveriesReplay) Run(s *session.Session) error {
	if (c.ID == "") == (c.Merchant == "") || c.ID != "" && (!c.From.IsZero() || !c.To.IsZero()) {
		return output.UsageError(`expected "<id>", or --merchant with --from and --to`)
	}
	replay := resend{
		addressFlags: c.addressFlags, action: "replay deliveries", id: c.ID, nameOrID: c.Merchant,
		wanted: func(e *ledger.Entry) bool { return c.firstReplayable(e) != "" },
		change: func(e *ledger.Entry, now time.Time) ledger.Transition {
			return ledger.Replay.If(e.Outbox.ReplayNotification(c.firstReplayable(e), now))
		},
		errEmpty: errors.New("there is nothing to send again: deliveries show lists a transaction's notifications"),
	}
	return replay.run(s, c.TimeRange, output.FormatTime(c.From.Time)+" to "+output.FormatTime(c.End()))
}

// firstReplayable returns the id of the range's earliest notification that is delivered, dead or parked, "" for none. A
// replay sends it and all after it. The range is open for a single id.
func (c *deliveriesReplay) firstReplayable(e *ledger.Entry) string {
	within := func(n ledger.Notification) bool { return c.Contains(n.At) }
	if i := slices.IndexFunc(e.Outbox.Delivered, within); i >= 0 && !c.DeadLetters {
		return e.Outbox.Delivered[i].ID
	}
	for _, n := range e.Outbox.Waiting {
		if within(n) && (n.DeadReason != "" || n.Parked) {
			return n.ID
		}
	}
	return ""
}
