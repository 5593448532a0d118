package gatewayctl

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
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

// resendItem is a transaction with notifications to send.
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

// resendResult is the output of a replay and of a send.
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
	return plan, nil
}

// planOneOrRange is plan for one transaction, or without an id for a merchant's statuses of a time range.
func (c resend) planOneOrRange(s *session, id, nameOrID string, r timeRange) (plan resendPlan, err error) {
	if id != "" {
		e, p, err := s.findNotified(id)
		if err != nil {
			return plan, err
		}
		plan, err = c.plan(func(yield func(*ledger.Entry, error) bool) { yield(e, nil) }, p)
		return plan, cmp.Or(err, c.checkNotEmpty(plan))
	}
	from, to, err := r.bounds()
	if err != nil {
		return plan, err
	}
	p, err := s.findMerchant(nameOrID)
	if err != nil {
		return plan, err
	}
	plan, err = c.plan(s.entriesBetween(p.ID, firstDay(p, from), to), p)
	return plan, cmp.Or(err, c.checkNotEmpty(plan))
}

func (c resend) checkNotEmpty(plan resendPlan) error {
	if len(plan.items)+len(plan.failed) > 0 {
		return nil
	}
	return c.errEmpty
}

// checkCaches refuses to send to a new address while functions may have the profile of before in their cache: they
// would still post to the former one.
func (p resendPlan) checkCaches(s *session) error {
	moved := slices.ContainsFunc(p.items, func(item resendItem) bool { return item.to.Former != "" })
	if from := s.effectiveFrom(p.merchant.UpdatedAt); moved && s.Now().Before(from) {
		return fmt.Errorf("the profile was changed lately, and functions use its notif_url from %s on: "+
			"run the command again then", formatTime(from))
	}
	return nil
}

// run queues what was planned, each notification with its own webhook-id, and shows how many go where. prepare runs
// before it, within the change; nil for nothing.
func (c resend) run(s *session, plan resendPlan, subject, scope string, prepare func() error) error {
	if err := plan.checkCaches(s); err != nil {
		return err
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
			if _, err := s.changeEntry(item.key, queue); err != nil {
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
		all := plural(len(plan.items)+len(plan.failed), "transaction")
		return fmt.Sprintf("%s%d of %s queued%s", scope, result.Queued, all, describe(result.Addresses)),
			result.err(s.Err())
	})
	return errors.Join(err, s.show(result, result.rows()))
}

// rows are the result for people.
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

// describe names the destination in an audit record, if there is one only.
func describe(counts []destinationCount) string {
	if len(counts) != 1 {
		return ""
	}
	return " to " + counts[0].String()
}

// countDestinations counts the transactions of each destination, the most frequent first.
func countDestinations(items []resendItem) []destinationCount {
	counts := map[destination]int{}
	for _, item := range items {
		counts[item.to]++
	}
	views := []destinationCount{}
	for to := range maps.Keys(counts) {
		views = append(views, destinationCount{to, counts[to]})
	}
	slices.SortFunc(views, func(a, b destinationCount) int {
		return cmp.Or(b.Transactions-a.Transactions, cmp.Compare(a.URL+" "+a.Former, b.URL+" "+b.Former))
	})
	return views
}
