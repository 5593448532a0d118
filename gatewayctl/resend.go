package gatewayctl

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/webhook"
)

const (
	// progressEvery is the number of transactions between two lines of progress.
	progressEvery = 100
	// maxAddressRows bounds the addresses that people see; programs see all.
	maxAddressRows = 10
)

// addressFlags choose the address of what is sent again (decision "notification-address").
type addressFlags struct {
	FormerAddress bool `help:"Send to the notif_url of the time of the request, not to the profile's present one."`
	loopbackFlag
}

// resend sends notifications of several transactions again, or now.
type resend struct {
	addressFlags
	action string
	// wanted reports whether an entry has a notification to send; change queues it and all that follow it.
	wanted func(e *ledger.Entry) bool
	change func(e *ledger.Entry, now time.Time) bool
	// errEmpty is the error if no entry has one.
	errEmpty error
}

// destination is where notifications go. Former is the address of the time of the request, if it is another one.
type destination struct {
	URL    string `json:"url"`
	Former string `json:"former,omitempty"`
}

// destinationOf returns where an entry's notifications go.
func destinationOf(e *ledger.Entry, p *merchant.Profile) destination {
	to := destination{URL: delivery.NotificationURL(e, p)}
	if to.URL != e.NotifyURL {
		to.Former = e.NotifyURL
	}
	return to
}

// destinationCount is the number of transactions whose notifications go to one destination.
type destinationCount struct {
	destination
	Transactions int `json:"transactions"`
}

type resendItem struct {
	key ledger.Key
	to  destination
}

// resendPlan has the transactions to send. failed are those whose address is refused.
type resendPlan struct {
	merchant *merchant.Profile
	items    []resendItem
	failed   []string
}

type resendResult struct {
	Queued    int                `json:"queued"`
	Failed    []string           `json:"failed"`
	Addresses []destinationCount `json:"addresses"`
}

// err returns the error of a command that did not queue everything.
func (r resendResult) err(interrupted error) error {
	switch {
	case interrupted != nil:
		return fmt.Errorf("interrupted after %s, which the same command would send once more: %w",
			plural(r.Queued, "transaction"), interrupted)
	case len(r.Failed) > 0:
		return fmt.Errorf("%s could not be queued, run the command again for them; the first: %s",
			plural(len(r.Failed), "transaction"), r.Failed[0])
	}
	return nil
}

// plan selects entries of a merchant, and checks the addresses to which their notifications would go.
func (c resend) plan(entries iter.Seq2[*ledger.Entry, error], p *merchant.Profile) (resendPlan, error) {
	plan := resendPlan{merchant: p, failed: []string{}}
	for e, err := range entries {
		if err != nil {
			return plan, err
		}
		if !c.wanted(e) {
			continue
		}
		e = e.Clone()
		e.SelectAddress(c.FormerAddress)
		to := destinationOf(e, p)
		if err := delivery.CheckNotificationURL(to.URL, e, p, c.AllowLoopback); err != nil {
			plan.failed = append(plan.failed, fmt.Sprintf("%s: %s: %s", e.Key, to.URL, err))
			continue
		}
		plan.items = append(plan.items, resendItem{e.Key, to})
	}
	if len(plan.items)+len(plan.failed) == 0 {
		return plan, c.errEmpty
	}
	return plan, nil
}

// planOneOrRange is plan for one transaction, or without an id for a merchant's statuses of a time range.
func (c resend) planOneOrRange(s *session, id, nameOrID string, r timeRange) (plan resendPlan, err error) {
	if id != "" {
		e, p, err := findNotified(s, id)
		if err != nil {
			return plan, err
		}
		return c.plan(func(yield func(*ledger.Entry, error) bool) { yield(e, nil) }, p)
	}
	from, to, err := r.bounds()
	if err != nil {
		return plan, err
	}
	p, err := s.findMerchant(nameOrID)
	if err != nil {
		return plan, err
	}
	return c.plan(entriesBetween(s, p.ID, firstDay(p, from), to), p)
}

// run queues what was planned, each notification with its own webhook-id, and shows how many go where. prepare runs
// before it, within the change; nil for nothing. It refuses to send to a new address while functions may have the
// profile of before in their cache: they would still post to the former one.
func (c resend) run(s *session, plan resendPlan, subject, scope string, prepare func() error) error {
	moved := slices.ContainsFunc(plan.items, func(item resendItem) bool { return item.to.Former != "" })
	if from := s.effectiveFrom(plan.merchant.UpdatedAt); moved && s.Now().Before(from) {
		return fmt.Errorf("the profile was changed lately, and functions use its notif_url from %s on: "+
			"run the command again then", formatTime(from))
	}
	result := resendResult{Failed: plan.failed, Addresses: countDestinations(plan.items)}
	err := s.execute(c.action, subject, func() (string, error) {
		if prepare != nil {
			if err := prepare(); err != nil {
				return "nothing", err
			}
		}
		queue := changeIf(func(e *ledger.Entry) bool {
			e.SelectAddress(c.FormerAddress)
			return c.wanted(e) && c.change(e, ledger.Timestamp(s.Now()))
		})
		for i, item := range plan.items {
			if _, err := changeEntry(s, item.key, queue); err != nil {
				result.Failed = append(result.Failed, item.key.String()+": "+err.Error())
			} else {
				result.Queued++
			}
			if (i+1)%progressEvery == 0 {
				fmt.Fprintf(s.Stderr, "%d of %d\n", i+1, len(plan.items))
			}
			if s.Err() != nil {
				break
			}
		}
		done := fmt.Sprintf("%s%d of %s queued", scope, result.Queued,
			plural(len(plan.items)+len(plan.failed), "transaction"))
		if len(result.Addresses) == 1 {
			done += " to " + result.Addresses[0].String()
		}
		return done, result.err(s.Err())
	})
	return errors.Join(err, s.show(result, result.rows()))
}

func (r resendResult) rows() table {
	rows := table{{"queued", strconv.Itoa(r.Queued)}, {"failed", strconv.Itoa(len(r.Failed))}}
	for i, to := range r.Addresses {
		if i == maxAddressRows {
			return append(rows, []string{"to", plural(len(r.Addresses)-i, "further address")})
		}
		rows = append(rows, []string{"to", fmt.Sprintf("%s: %d", to, to.Transactions)})
	}
	return rows
}

// String describes the destination.
func (d destination) String() string {
	if d.Former == "" {
		return d.URL
	}
	return d.URL + " (the profile's; at the request " + d.Former + ")"
}

// countDestinations counts the transactions of each destination, the most frequent first.
func countDestinations(items []resendItem) []destinationCount {
	counts := map[destination]int{}
	for _, item := range items {
		counts[item.to]++
	}
	views := []destinationCount{}
	for to, count := range counts {
		views = append(views, destinationCount{to, count})
	}
	slices.SortFunc(views, func(a, b destinationCount) int {
		return cmp.Or(b.Transactions-a.Transactions, cmp.Compare(a.URL+" "+a.Former, b.URL+" "+b.Former))
	})
	return views
}

type deliveriesSend struct {
	ID       string `arg:"" optional:"" help:"An order_id, or the request id of an SMS."`
	Merchant string `placeholder:"NAME" help:"Instead of the id: the merchant's name or id, with --since."`
	Since    moment `placeholder:"TIME" help:"With --merchant: the first UTC day, or RFC 3339 time, of the statuses."`
	addressFlags
}

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
		change: (*ledger.Entry).SendNow,
		errEmpty: errors.New("nothing waits that does not go within a minute anyway: deliveries show lists a " +
			"transaction's notifications, deliveries replay sends dead letters and delivered ones again"),
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
