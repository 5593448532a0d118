package deliveries

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/webhook"
)

// addressFlags choose the address of what is sent again (decision "notification-address").
type addressFlags struct {
	FormerAddress bool `help:"Send to the notif_url of the time of the request, not to the profile's present one."`
	session.LoopbackFlag
}

// Destination is where notifications go. Former is the address of the time of the request, if it is another one.
type Destination struct {
	URL    string `json:"url"`
	Former string `json:"former,omitempty"`
}

// String describes the destination.
func (d Destination) String() string {
	if d.Former == "" {
		return d.URL
	}
	return d.URL + " (the profile's; at the request " + d.Former + ")"
}

// destinationOf returns where an entry's notifications go.
func destinationOf(e *ledger.Entry, p *merchant.Profile) Destination {
	to := Destination{URL: delivery.NotificationURL(e, p)}
	if to.URL != e.Outbox.URL {
		to.Former = e.Outbox.URL
	}
	return to
}

// DestinationCount is the number of transactions whose notifications go to one destination.
type DestinationCount struct {
	Destination
	Transactions int `json:"transactions"`
}

// countDestinations counts the transactions of each destination, the most frequent first.
func countDestinations(items []resendItem) []DestinationCount {
	counts := map[Destination]int{}
	for _, item := range items {
		counts[item.to]++
	}
	views := []DestinationCount{}
	for to, count := range counts {
		views = append(views, DestinationCount{to, count})
	}
	slices.SortFunc(views, func(a, b DestinationCount) int {
		return cmp.Or(b.Transactions-a.Transactions, cmp.Compare(a.URL+" "+a.Former, b.URL+" "+b.Former))
	})
	return views
}

// maxAddressRows bounds the addresses that people see; programs see all.
const maxAddressRows = 10

// resend sends notifications of several transactions again, or now: those of one transaction or, without an id, those
// of a merchant.
type resend struct {
	addressFlags
	action       string
	id, nameOrID string
	// wanted reports whether an entry has a notification to send; change queues it and all that follow it.
	wanted func(e *ledger.Entry) bool
	change func(e *ledger.Entry, now time.Time) ledger.Transition
	// errEmpty is the error if no entry has one.
	errEmpty error
	// opensFastPaths is true if the relay shall post within seconds, also to a server that failed.
	opensFastPaths bool

	merchant  *merchant.Profile
	items     []resendItem
	failed    []string         // the transactions whose address is refused or disabled
	endpoints []webhook.Health // of the items
}

type resendItem struct {
	key ledger.Key
	to  Destination
}

// plan selects the entries, of a merchant those whose statuses are of a time range. It checks the addresses to which
// their notifications would go: nothing is sent to a refused or a disabled one.
func (c *resend) plan(s *session.Session, r session.TimeRange) error {
	found, err := c.find(s, r)
	if err != nil {
		return err
	}
	for e, err := range found {
		if err != nil {
			return err
		}
		if !c.wanted(e) {
			continue
		}
		e = e.Clone()
		e.Outbox.SelectAddress(c.FormerAddress)
		to := destinationOf(e, c.merchant)
		if err := delivery.CheckNotificationURL(to.URL, e, c.merchant, c.AllowLoopback); err != nil {
			c.failed = append(c.failed, fmt.Sprintf("%s: %s: %s", e.Key, to.URL, err))
			continue
		}
		c.items = append(c.items, resendItem{e.Key, to})
	}
	if len(c.items)+len(c.failed) == 0 {
		return c.errEmpty
	}
	return c.readEndpoints(s)
}

// readEndpoints reads the health of the planned endpoints. It moves the transactions of disabled ones to the failed
// ones: queued there, a notification would only be parked, again if it was.
func (c *resend) readEndpoints(s *session.Session) error {
	disabled := map[string]bool{}
	for _, to := range countDestinations(c.items) {
		at, err := s.Stores.EndpointHealth.Health(s, webhook.Endpoint{MerchantID: c.merchant.ID, URL: to.URL})
		if err != nil {
			return err
		}
		disabled[to.URL] = !at.Enabled()
		if at.Enabled() {
			c.endpoints = append(c.endpoints, at)
		}
	}
	c.items = slices.DeleteFunc(c.items, func(item resendItem) bool {
		if disabled[item.to.URL] {
			enable := session.ConfirmArguments("endpoint", "enable", c.merchant.Name, "--url", item.to.URL)
			c.failed = append(c.failed, fmt.Sprintf("%s: its address is disabled. When the merchant's server accepts "+
				"notifications, run %s", item.key, s.Command(enable...)))
		}
		return disabled[item.to.URL]
	})
	return nil
}

// openFastPaths opens the fast path of servers. If an attempt has stored its result since it was read, that counts.
func openFastPaths(s *session.Session, servers []webhook.Health) error {
	for _, at := range servers {
		if next, changed := at.AfterReopen(s.Now()); changed {
			if _, err := s.Stores.EndpointHealth.SaveHealth(s, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// find finds the merchant, and the entries from which plan selects.
func (c *resend) find(s *session.Session, r session.TimeRange) (found iter.Seq2[*ledger.Entry, error], err error) {
	if c.id != "" {
		var e *ledger.Entry
		e, c.merchant, err = findNotified(s, c.id)
		return func(yield func(*ledger.Entry, error) bool) { yield(e, nil) }, err
	}
	from, to, err := r.Bounds()
	if err != nil {
		return nil, err
	}
	c.merchant, err = s.FindMerchant(c.nameOrID)
	if err != nil {
		return nil, err
	}
	return entries.Between(s, c.merchant, entries.FirstDay(c.merchant, from), to), nil
}

// run plans and queues what was planned, each notification with its own webhook-id. It shows how many go where. It
// refuses to send to a new address while functions may have the profile of before in their cache: they would still post
// to the former one. scope is the range of a merchant's notifications, for the audit record.
func (c *resend) run(s *session.Session, r session.TimeRange, scope string) error {
	if err := c.plan(s, r); err != nil {
		return err
	}
	moved := slices.ContainsFunc(c.items, func(item resendItem) bool { return item.to.Former != "" })
	if from := s.EffectiveFrom(c.merchant.UpdatedAt); moved && s.Now().Before(from) {
		return fmt.Errorf("the profile was changed lately, and functions use its notif_url from %s on: "+
			"run the command again then", output.FormatTime(from))
	}
	result := Result{Failed: output.NonNil(c.failed), Addresses: countDestinations(c.items)}
	err := s.Execute(c.action, cmp.Or(c.id, c.nameOrID), func() (string, error) {
		if c.opensFastPaths {
			if err := openFastPaths(s, c.endpoints); err != nil {
				return "nothing", err
			}
		}
		queue := entries.Always(func(e *ledger.Entry) ledger.Transition {
			e.Outbox.SelectAddress(c.FormerAddress)
			if !c.wanted(e) {
				return ledger.NoTransition
			}
			return c.change(e, ledger.Timestamp(s.Now()))
		})
		for i, item := range c.items {
			if _, err := entries.Apply(s, item.key, queue); err != nil {
				result.Failed = append(result.Failed, fmt.Sprintf("%s: %s: run the command again", item.key, err))
			} else {
				result.Queued++
			}
			if (i+1)%entries.ProgressEvery == 0 {
				fmt.Fprintf(s.Stderr, "%d of %d\n", i+1, len(c.items))
			}
			if s.Err() != nil {
				break
			}
		}
		done := fmt.Sprintf("%d of %s queued", result.Queued,
			output.Plural(len(c.items)+len(c.failed), "transaction"))
		if c.id == "" {
			done = scope + ": " + done
		}
		if len(result.Addresses) == 1 {
			done += " to " + result.Addresses[0].String()
		}
		return done, result.err(s.Err())
	})
	return errors.Join(err, s.Show(result, result.rows()))
}

// Result counts the transactions that were queued.
type Result struct {
	Queued    int                `json:"queued"`
	Failed    []string           `json:"failed"`
	Addresses []DestinationCount `json:"addresses"`
}

// err returns the error of a command that did not queue everything.
func (r Result) err(interrupted error) error {
	switch {
	case interrupted != nil:
		return fmt.Errorf("interrupted after %s, which the same command would send once more: %w",
			output.Plural(r.Queued, "transaction"), interrupted)
	case len(r.Failed) > 0:
		first := r.Failed[0]
		if more := len(r.Failed) - 1; more > 0 {
			first += fmt.Sprintf("; and %d more, which --json lists", more)
		}
		return fmt.Errorf("%s could not be queued: %s", output.Plural(len(r.Failed), "transaction"), first)
	}
	return nil
}

func (r Result) rows() output.Table {
	rows := output.Table{{"queued", strconv.Itoa(r.Queued)}, {"failed", strconv.Itoa(len(r.Failed))}}
	for i, to := range r.Addresses {
		if i == maxAddressRows {
			return append(rows, []string{"to", output.Plural(len(r.Addresses)-i, "further address")})
		}
		rows = append(rows, []string{"to", fmt.Sprintf("%s: %d", to, to.Transactions)})
	}
	return rows
}
