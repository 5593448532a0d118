package gatewayctl

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"mobilegateway/shared/ledger"
)

// Limits of reading.
const (
	pageSize      = 200 // entries in memory at once
	parallelReads = 8   // reads side by side
	day           = 24 * time.Hour
)

type listCommand struct {
	Merchant string `required:"" placeholder:"NAME" help:"The merchant's name or id."`
	Day      string `required:"" placeholder:"DAY" help:"The UTC day of creation, such as 2026-03-01."`
	Kind     string `enum:"all,charge,pay,sms" default:"all" help:"all, charge, pay or sms."`
	Status   string `placeholder:"STATUS" help:"Only this status, such as pending; or this state, such as unknown."`
}

// Run lists the day in the order of creation. A day that is too large for that is exported instead.
func (c *listCommand) Run(s *session) error {
	at, err := parseDay(c.Day)
	if err != nil {
		return err
	}
	if c.Status != "" && !slices.Contains(statusAndStateNames(), c.Status) {
		return usageError("--status %q is not one of %s", c.Status, joinComma(statusAndStateNames()))
	}
	p, err := s.findMerchant(c.Merchant)
	if err != nil {
		return err
	}
	views := []entryView{}
	rows := table{{"CREATED", "KIND", "ID", "STATE", "STATUS", "AMOUNT", "CURRENCY", "OPERATOR"}}
	for e, err := range s.entriesBetween(p.ID, at, at.Add(day)) {
		if err != nil {
			return err
		}
		v := entryViewOf(e)
		if c.Kind != "all" && c.Kind != string(v.Kind) || c.Status != "" && c.Status != string(v.Status) && c.Status != string(v.State) {
			continue
		}
		views = append(views, v)
		rows = append(rows, []string{formatTime(v.CreatedAt), string(v.Kind), v.ID, string(v.State), string(v.Status), v.Amount, v.Currency, v.Operator})
	}
	return s.show(views, rows)
}

// statusAndStateNames are what --status may be: the statuses of payments and SMS, and the states.
func statusAndStateNames() []string {
	var words []string
	for _, status := range []ledger.Status{
		ledger.Pending, ledger.Successful, ledger.Failed, ledger.Cancelled, ledger.Expired, ledger.MessageWaiting, ledger.DeliveredToNetwork,
		ledger.DeliveredToTerminal, ledger.DeliveryUncertain, ledger.DeliveryImpossible, ledger.NotificationNotSupp,
	} {
		words = append(words, string(status))
	}
	for _, state := range []ledger.State{ledger.Reserved, ledger.Done, ledger.Refused, ledger.Unknown, ledger.Released} {
		words = append(words, string(state))
	}
	return words
}

// entryPage is some entries of a day, and the cursor of what follows: "" at the end of the day.
type entryPage struct {
	day     time.Time
	entries []*ledger.Entry
	next    string
}

// pagesBetween reads the entries that a merchant created from a day on and before a moment, page by page. It begins at a cursor
// of the first day.
func (s *session) pagesBetween(merchantID string, from, to time.Time, cursor string) iter.Seq2[entryPage, error] {
	return func(yield func(entryPage, error) bool) {
		for at := from.UTC().Truncate(day); at.Before(to); at = at.Add(day) {
			for more := true; more; more = cursor != "" {
				keys, next, err := s.stores.Ledger.Day(s, merchantID, at, cursor, pageSize)
				var entries []*ledger.Entry
				if err == nil {
					entries, err = s.readEntries(keys)
				}
				cursor = next
				if !yield(entryPage{at, entries, next}, err) || err != nil {
					return
				}
			}
		}
	}
}

// entriesBetween is pages, entry by entry.
func (s *session) entriesBetween(merchantID string, from, to time.Time) iter.Seq2[*ledger.Entry, error] {
	return func(yield func(*ledger.Entry, error) bool) {
		for p, err := range s.pagesBetween(merchantID, from, to, "") {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, e := range p.entries {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// readEntries reads keys, some side by side, in their order. Those that are gone by now are left out.
func (s *session) readEntries(keys []ledger.Key) ([]*ledger.Entry, error) {
	found, faults := make([]*ledger.Entry, len(keys)), make([]error, len(keys))
	var group sync.WaitGroup
	for reader := range parallelReads {
		group.Go(func() {
			for i := reader; i < len(keys); i += parallelReads {
				found[i], faults[i] = s.stores.Ledger.Get(s, keys[i])
				if faults[i] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("read the transactions: %w", err)
	}
	left := found[:0]
	for _, e := range found {
		if e != nil {
			left = append(left, e)
		}
	}
	return left, nil
}
