package gatewayctl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
)

type deliveriesSend struct {
	ID       string `arg:"" optional:"" help:"An order_id, or the request id of an SMS."`
	Merchant string `placeholder:"NAME" help:"Instead of the id: the merchant's name or id, with --since."`
	Since    moment `placeholder:"TIME" help:"With --merchant: the first UTC day, or RFC 3339 time, of the statuses."`
	addressFlags
}

// errNothingWaits means that there is nothing to send now.
var errNothingWaits = errors.New("nothing waits that does not go within a minute anyway: deliveries show lists a " +
	"transaction's notifications, deliveries replay sends dead letters and delivered ones again")

// Run queues the notifications that wait for a later attempt, and those that are parked at an enabled endpoint. It
// opens the fast path of the servers first, so that the relay posts within seconds.
func (c *deliveriesSend) Run(s *session) error {
	if (c.ID == "") == (c.Merchant == "") || (c.Merchant == "") != c.Since.IsZero() {
		return usageError(`expected "<id>", or --merchant with --since`)
	}
	since := timeRange{From: c.Since, To: moment{Time: s.Now().Add(time.Minute)}}
	send := resend{
		addressFlags: c.addressFlags, action: "send deliveries now",
		wanted: func(e *ledger.Entry) bool {
			return e.Waits(ledger.Timestamp(s.Now())) && (c.ID != "" || since.contains(e.OutboxHead().At))
		},
		change: (*ledger.Entry).SendNow, errEmpty: errNothingWaits,
	}
	plan, err := send.planOneOrRange(s, c.ID, c.Merchant, since)
	if err != nil {
		return err
	}
	closed, err := plan.readEndpoints(s)
	if err != nil {
		return err
	}
	scope := ""
	if c.Merchant != "" {
		scope = "since " + formatTime(c.Since.Time) + ": "
	}
	return send.run(s, plan, cmp.Or(c.ID, c.Merchant), scope, func() error { return openFastPaths(s, closed) })
}

// readEndpoints reads the health of the plan's endpoints. It moves the transactions of disabled ones to the failed
// ones, and returns the healths of the servers whose fast path is closed.
func (p *resendPlan) readEndpoints(s *session) (closed []webhook.Health, err error) {
	servers := map[webhook.Server]bool{}
	disabled := map[string]bool{}
	for _, to := range countDestinations(p.items) {
		at, err := s.stores.EndpointHealth.Health(s, webhook.Endpoint{MerchantID: p.merchant.ID, URL: to.URL})
		if err != nil {
			return nil, err
		}
		disabled[to.URL] = !at.Enabled()
		if at.Enabled() && !at.AllowsFastPath() && !servers[at.Server()] {
			servers[at.Server()] = true
			closed = append(closed, at)
		}
	}
	p.items = slices.DeleteFunc(p.items, func(item resendItem) bool {
		if disabled[item.to.URL] {
			p.failed = append(p.failed, fmt.Sprintf("%s: %s is disabled: endpoint enable %s --url %s",
				item.key, item.to.URL, p.merchant.Name, item.to.URL))
		}
		return disabled[item.to.URL]
	})
	return closed, nil
}

// openFastPaths opens the fast path of servers. If an attempt has stored its result since it was read, that counts.
func openFastPaths(s *session, closed []webhook.Health) error {
	for _, at := range closed {
		next, changed := at.AfterReopen(s.Now())
		if !changed {
			continue
		}
		if _, err := s.stores.EndpointHealth.SaveHealth(s, next); err != nil {
			return err
		}
	}
	return nil
}
