package deliveries

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
)

type deliveriesSend struct {
	ID       string `arg:"" optional:"" help:"An order_id, or the request id of an SMS."`
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
		wanted: func(e *ledger.Entry) bool {
			return e.Outbox.Waits(ledger.Timestamp(s.Now())) && (c.ID != "" || since.Contains(e.Outbox.Head().At))
		},
		change: func(e *ledger.Entry, now time.Time) bool { return e.Outbox.SendNow(now) },
		errEmpty: errors.New("nothing waits that does not go within a minute anyway: deliveries show lists a " +
			"transaction's notifications, deliveries replay sends dead letters and delivered ones again"),
	}
	if err := send.plan(s, since); err != nil {
		return err
	}
	if err := send.readEndpoints(s); err != nil {
		return err
	}
	scope := ""
	if c.Merchant != "" {
		scope = "since " + output.FormatTime(c.Since.Time) + ": "
	}
	return send.run(s, scope)
}

// openFastPaths opens the fast path of servers. If an attempt has stored its result since it was read, that counts.
func openFastPaths(s *session.Session, closed []webhook.Health) error {
	for _, at := range closed {
		if next, changed := at.AfterReopen(s.Now()); changed {
			if _, err := s.Stores.EndpointHealth.SaveHealth(s, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// readEndpoints reads the health of the planned endpoints. It moves the transactions of disabled ones to the failed
// ones, and finds the servers whose fast path is closed.
func (c *resend) readEndpoints(s *session.Session) error {
	servers := map[webhook.Server]bool{}
	disabled := map[string]bool{}
	for _, to := range countDestinations(c.items) {
		at, err := s.Stores.EndpointHealth.Health(s, webhook.Endpoint{MerchantID: c.merchant.ID, URL: to.URL})
		if err != nil {
			return err
		}
		disabled[to.URL] = !at.Enabled()
		if at.Enabled() && !at.AllowsFastPath() && !servers[at.Server()] {
			servers[at.Server()] = true
			c.closed = append(c.closed, at)
		}
	}
	c.items = slices.DeleteFunc(c.items, func(item resendItem) bool {
		if disabled[item.to.URL] {
			c.failed = append(c.failed, fmt.Sprintf("%s: %s is disabled: endpoint enable %s --url %s",
				item.key, item.to.URL, c.merchant.Name, item.to.URL))
		}
		return disabled[item.to.URL]
	})
	return nil
}

type deliveriesReplay struct {
	ID       string `arg:"" optional:"" help:"An order_id, or the request id of an SMS."`
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
		change: func(e *ledger.Entry, now time.Time) bool {
			return e.Outbox.ReplayNotification(c.firstReplayable(e), now)
		},
		errEmpty: errors.New("there is nothing to send again: deliveries show lists a transaction's notifications"),
	}
	if err := replay.plan(s, c.TimeRange); err != nil {
		return err
	}
	scope := ""
	if c.Merchant != "" {
		scope = fmt.Sprintf("%s to %s: ", output.FormatTime(c.From.Time), output.FormatTime(c.End()))
	}
	return replay.run(s, scope)
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
