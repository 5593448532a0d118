package gatewayctl

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// Limits of reading.
const (
	pageSize      = 200 // entries in memory at once
	parallelReads = 8   // concurrent reads
)

type listCommand struct {
	merchantArgument
	Day utcDay `placeholder:"DAY" help:"The UTC day of creation, such as 2026-03-01; today if not given."`
	dayRange
	kindFlag
	Status string `placeholder:"STATUS" help:"Only this status, such as pending; or this state, such as unknown."`
}

type kindFlag struct {
	Kind string `enum:"all,charge,pay,sms" default:"all" help:"all, charge, pay or sms."`
}

func (c kindFlag) matches(e *ledger.Entry) bool { return c.Kind == "all" || c.Kind == string(e.Kind) }

// Validate refuses an unknown status and a day beside a range.
func (c *listCommand) Validate() error {
	if c.Status != "" && !slices.Contains(statusesAndStates, c.Status) {
		return fmt.Errorf("--status %q is not one of %s", c.Status, joinComma(statusesAndStates))
	}
	if !c.Day.IsZero() && !(c.From.IsZero() && c.To.IsZero()) {
		return errors.New("--day excludes --from and --to: use the day or the range")
	}
	return nil
}

// Run lists the transactions in the order of creation. For very many transactions use export.
func (c *listCommand) Run(s *session) error {
	if c.From.IsZero() && c.To.IsZero() {
		if c.Day.IsZero() {
			c.Day.Time = s.Now().UTC().Truncate(day)
		}
		c.From, c.To = c.Day, c.Day
	}
	var views []entryView
	for e, err := range entriesInRange(s, c.Name, c.times(), nil) {
		if err != nil {
			return err
		}
		if c.matches(e) && (c.Status == "" || c.Status == string(e.Status) || c.Status == string(e.State)) {
			views = append(views, entryViewOf(e))
		}
	}
	return showList(s, views)
}

// statusesAndStates are the values of --status: the statuses of payments, those of SMS, and the states.
var statusesAndStates = []string{
	string(ledger.Pending), string(ledger.Successful), string(ledger.Failed), string(ledger.Cancelled),
	string(ledger.Expired),
	string(ledger.MessageWaiting), string(ledger.DeliveredToNetwork), string(ledger.DeliveredToTerminal),
	string(ledger.DeliveryUncertain), string(ledger.DeliveryImpossible), string(ledger.NotificationNotSupp),
	string(ledger.Reserved), string(ledger.Done), string(ledger.Refused), string(ledger.Unknown),
	string(ledger.Released),
}

// entryPage is a page of a day's entries. next is the cursor of the next page, "" on the day's last page.
type entryPage struct {
	day     time.Time
	entries []*ledger.Entry
	next    string
}

// pagesBetween reads the entries that a merchant created from a day on and before a time, page by page. It begins at a
// cursor of the first day.
func pagesBetween(s *session, merchantID string, from, to time.Time, cursor string) iter.Seq2[entryPage, error] {
	return func(yield func(entryPage, error) bool) {
		for at := from.UTC().Truncate(day); at.Before(to); at = at.Add(day) {
			for more := true; more; more = cursor != "" {
				keys, next, err := s.stores.Ledger.Day(s, merchantID, at, cursor, pageSize)
				entries, err := readEntries(s, keys, err)
				cursor = next
				if !yield(entryPage{at, entries, next}, err) || err != nil {
					return
				}
			}
		}
	}
}

// progressDays is the time between two lines of progress of a long walk through the days.
const progressDays = 30 * day

func entriesBetween(s *session, merchantID string, from, to time.Time) iter.Seq2[*ledger.Entry, error] {
	return entriesOf(func(yield func(entryPage, error) bool) {
		for p, err := range pagesBetween(s, merchantID, from, to, "") {
			if read := p.day.Sub(from.UTC().Truncate(day)); read > 0 && read%progressDays == 0 && p.next == "" {
				fmt.Fprintln(s.Stderr, "read to", p.day.Format(time.DateOnly))
			}
			if !yield(p, err) {
				return
			}
		}
	})
}

// entriesOf yields the entries of pages, one by one. It ends at the first error.
func entriesOf(pages iter.Seq2[entryPage, error]) iter.Seq2[*ledger.Entry, error] {
	return func(yield func(*ledger.Entry, error) bool) {
		for p, err := range pages {
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

// openEntries reads all that is due, which has all that is unknown or parked, and then each merchant's entries since a
// time, for what has no timer. It yields each entry once.
func openEntries(s *session, merchants []*merchant.Profile, since time.Time) iter.Seq2[*ledger.Entry, error] {
	return func(yield func(*ledger.Entry, error) bool) {
		sources := []iter.Seq2[*ledger.Entry, error]{dueEntries(s)}
		for _, p := range merchants {
			sources = append(sources, entriesSince(s, p, since))
		}
		due := map[ledger.Key]bool{}
		for i, source := range sources {
			for e, err := range source {
				if err == nil && due[e.Key] {
					continue
				}
				if !yield(e, err) || err != nil {
					return
				}
				if i == 0 {
					due[e.Key] = true
				}
			}
		}
	}
}

// firstDay is the earliest day of the transactions with a status at or after a time: when the merchant was added, but
// at least some days before the time. A status may come long after the creation: by a person, or by a lookup of an
// operator that was down.
func firstDay(p *merchant.Profile, from time.Time) time.Time {
	const usual = 4 * day
	first := from.Add(-usual)
	if !p.CreatedAt.IsZero() && p.CreatedAt.Before(first) {
		return p.CreatedAt
	}
	return first
}

// entriesInRange reads the entries that a merchant created in a range, the oldest first. start, if it is not nil,
// replaces the beginning of the range.
func entriesInRange(
	s *session, nameOrID string, r timeRange, start func(p *merchant.Profile, from time.Time) time.Time,
) iter.Seq2[*ledger.Entry, error] {
	return func(yield func(*ledger.Entry, error) bool) {
		from, to, err := r.bounds()
		var p *merchant.Profile
		if err == nil {
			p, err = s.findMerchant(nameOrID)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		if start != nil {
			from = start(p, from)
		}
		entriesBetween(s, p.ID, from, to)(yield)
	}
}

// readEntries reads entries concurrently and returns them in the order of their keys. It skips those that no longer
// exist. It returns keysErr, the error of reading the keys, at once.
func readEntries(s *session, keys []ledger.Key, keysErr error) ([]*ledger.Entry, error) {
	if keysErr != nil {
		return nil, keysErr
	}
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
	return slices.DeleteFunc(found, func(e *ledger.Entry) bool { return e == nil }), nil
}

const day = 24 * time.Hour

// utcDay is a flag's UTC day, as the time at which it begins.
type utcDay struct{ time.Time }

// moment is a flag's UTC day or RFC 3339 time.
type moment struct {
	time.Time
	wholeDay bool
}

// decodeTime decodes a utcDay or a moment, for a kong.MapperFunc. A day is also yesterday or today (UTC).
func decodeTime(c *kong.DecodeContext, target reflect.Value, now time.Time) (err error) {
	var text string
	if err := c.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	today := now.UTC().Truncate(day)
	at, named := map[string]time.Time{"today": today, "yesterday": today.Add(-day)}[text]
	if !named {
		at, err = time.Parse(time.DateOnly, text)
	}
	switch to := target.Addr().Interface().(type) {
	case *utcDay:
		if to.Time = at; err != nil {
			err = fmt.Errorf("%q is not a day such as 2026-03-01, yesterday or today", text)
		}
	case *moment:
		if to.wholeDay = err == nil; err != nil {
			at, err = time.Parse(time.RFC3339, text)
		}
		if to.Time = at.UTC(); err != nil {
			err = fmt.Errorf("%q is neither a day such as 2026-03-01, yesterday or today, "+
				"nor a time such as 2026-03-01T12:00:00Z", text)
		}
	}
	return err
}

type dayRange struct {
	From utcDay `placeholder:"DAY" help:"The first UTC day of creation, such as 2026-03-01."`
	To   utcDay `placeholder:"DAY" help:"The last UTC day of creation."`
}

// times returns the range as times: its last day is in it.
func (r dayRange) times() timeRange {
	return timeRange{moment{r.From.Time, true}, moment{r.To.Time, true}}
}

type timeRange struct {
	From moment `placeholder:"TIME" help:"The first UTC day, or RFC 3339 time, of the statuses."`
	To   moment `placeholder:"TIME" help:"The last UTC day, or the RFC 3339 time before which the range ends."`
}

// end returns when the range ends. A day as the end is in the range, a time is not.
func (r timeRange) end() time.Time {
	if r.To.wholeDay {
		return r.To.Add(day)
	}
	return r.To.Time
}

// contains reports whether a time is in the range. A flag that is not given leaves it open.
func (r timeRange) contains(at time.Time) bool {
	return !at.Before(r.From.Time) && (r.To.IsZero() || at.Before(r.end()))
}

// bounds returns when the range begins and when it ends, if it has both and is not empty.
func (r timeRange) bounds() (from, to time.Time, err error) {
	if r.From.IsZero() || r.To.IsZero() {
		return from, to, usageError("missing flags: a range needs --from and --to")
	}
	if !r.end().After(r.From.Time) {
		return from, to, usageError("the range is empty: --to must be after --from %s", formatTime(r.From.Time))
	}
	return r.From.Time, r.end(), nil
}
