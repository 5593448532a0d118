package gatewayctl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"mobilegateway/shared/ledger"
)

type deliveriesReplay struct {
	ID       string `arg:"" optional:"" help:"An order_id, or the request id of an SMS."`
	Merchant string `placeholder:"NAME" help:"Instead of the id: the merchant's name or id, with --from and --to."`
	timeRange
	DeadLetters bool `help:"Only dead letters, not what was delivered."`
	addressFlags
}

// Run queues the notifications again, each with its own webhook-id. It skips those that wait for an attempt.
func (c *deliveriesReplay) Run(s *session) error {
	if (c.ID == "") == (c.Merchant == "") || c.ID != "" && (!c.From.IsZero() || !c.To.IsZero()) {
		return usageError(`expected "<id>", or --merchant with --from and --to`)
	}
	replay := resend{
		addressFlags: c.addressFlags, action: "replay deliveries",
		wanted:   func(e *ledger.Entry) bool { return c.firstReplayable(e) != "" },
		change:   func(e *ledger.Entry, now time.Time) bool { return e.ReplayNotification(c.firstReplayable(e), now) },
		errEmpty: errors.New("there is nothing to send again: deliveries show lists a transaction's notifications"),
	}
	plan, err := replay.planOneOrRange(s, c.ID, c.Merchant, c.timeRange)
	if err != nil {
		return err
	}
	scope := ""
	if c.Merchant != "" {
		scope = fmt.Sprintf("%s to %s: ", formatTime(c.From.Time), formatTime(c.end()))
	}
	return replay.run(s, plan, cmp.Or(c.ID, c.Merchant), scope, nil)
}

// firstReplayable returns the id of the range's earliest notification that is delivered, dead or parked, "" for none. A
// replay sends it and all after it. The range is open for a single id.
func (c *deliveriesReplay) firstReplayable(e *ledger.Entry) string {
	within := func(n ledger.Notification) bool { return c.contains(n.At) }
	if i := slices.IndexFunc(e.Delivered, within); i >= 0 && !c.DeadLetters {
		return e.Delivered[i].ID
	}
	for _, n := range e.Outbox {
		if within(n) && (n.DeadReason != "" || n.Parked) {
			return n.ID
		}
	}
	return ""
}
