// Package entries reads the ledger's transactions for gatewayctl's commands.
//
// A view of a transaction has no token and no alias, and its numbers are masked.
package entries

import (
	"cmp"
	"fmt"
	"iter"
	"strings"
	"time"

	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/merchant"
)

// Find returns the entry with an id and the first of the kinds that has it. It must exist.
func Find(s *session.Session, id string, kinds ...ledger.Kind) (*ledger.Entry, error) {
	return FindTyped(s, id, id, kinds...)
}

// FindTyped is Find for an id that was made of what a person typed, which the error names.
func FindTyped(s *session.Session, typed, id string, kinds ...ledger.Kind) (*ledger.Entry, error) {
	if err := s.OpenStores(); err != nil {
		return nil, err
	}
	var labels []string
	for _, kind := range kinds {
		e, err := s.Stores.Ledger.Get(s, ledger.Key{Kind: kind, ID: id})
		if err != nil || e != nil {
			return e, err
		}
		labels = append(labels, KindLabel(kind))
	}
	return nil, fmt.Errorf("there is no %s %s: gatewayctl find searches for any id, key, reference or number",
		strings.Join(labels, " and no "), typed)
}

// KindLabel is the word for a kind of transaction.
func KindLabel(kind ledger.Kind) string {
	switch kind {
	case ledger.Payment:
		return "payment"
	case ledger.SMS:
		return "SMS"
	}
	return string(kind)
}

// PageSize is how many entries are in memory at once.
const PageSize = 200

// Page is a page of a day's entries. next is the cursor of the next page, "" on the day's last page.
type Page struct {
	Day     time.Time
	Entries []*ledger.Entry
	Next    string
}

// Pages reads the entries that a merchant created from a day on and before a time, page by page. It begins at a
// cursor of the first day.
func Pages(
	s *session.Session, p *merchant.Profile, from, to time.Time, cursor string,
) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		for at := from.UTC().Truncate(session.Day); at.Before(to); at = at.Add(session.Day) {
			day, err := newDayReader(s, p, at, cursor)
			if err != nil {
				yield(Page{Day: at}, err)
				return
			}
			for more := true; more; more = cursor != "" {
				var keys []ledger.Key
				keys, cursor, err = day.page(s)
				entries, err := readEntries(s, keys, err)
				if !yield(Page{at, entries, cursor}, err) || err != nil {
					return
				}
			}
		}
	}
}

// progressDays is the time between two lines of progress of a long walk through the days.
const progressDays = 30 * session.Day

// Between reads the entries that a merchant created from a day on and before a time, with progress.
func Between(s *session.Session, p *merchant.Profile, from, to time.Time) iter.Seq2[*ledger.Entry, error] {
	return entriesOf(func(yield func(Page, error) bool) {
		for page, err := range Pages(s, p, from, to, "") {
			read := page.Day.Sub(from.UTC().Truncate(session.Day))
			if read > 0 && read%progressDays == 0 && page.Next == "" {
				fmt.Fprintln(s.Stderr, "read to", page.Day.Format(time.DateOnly))
			}
			if !yield(page, err) {
				return
			}
		}
	})
}

// entriesOf yields the entries of pages, one by one. It ends at the first error.
func entriesOf(pages iter.Seq2[Page, error]) iter.Seq2[*ledger.Entry, error] {
	return func(yield func(*ledger.Entry, error) bool) {
		for p, err := range pages {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, e := range p.Entries {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// readEntries reads the entries of keys by batches. It returns keysErr, the error of reading the keys, at once.
func readEntries(s *session.Session, keys []ledger.Key, keysErr error) ([]*ledger.Entry, error) {
	if keysErr != nil {
		return nil, keysErr
	}
	return ReadBatches(s, keys)
}

// FirstDay is the earliest day of the transactions with a status at or after a time: when the merchant was added, but
// at least some days before the time. A status may come long after the creation: by a person, or by a lookup of an
// operator that was down.
func FirstDay(p *merchant.Profile, from time.Time) time.Time {
	const usual = 4 * session.Day
	first := from.Add(-usual)
	if !p.CreatedAt.IsZero() && p.CreatedAt.Before(first) {
		return p.CreatedAt
	}
	return first
}

// InRange reads the entries that a merchant created in a range, the oldest first. start, if it is not nil,
// replaces the beginning of the range.
func InRange(
	s *session.Session, nameOrID string, r session.TimeRange, start func(p *merchant.Profile, from time.Time) time.Time,
) iter.Seq2[*ledger.Entry, error] {
	return func(yield func(*ledger.Entry, error) bool) {
		from, to, err := r.Bounds()
		var p *merchant.Profile
		if err == nil {
			p, err = s.FindMerchant(nameOrID)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		if start != nil {
			from = start(p, from)
		}
		Between(s, p, from, to)(yield)
	}
}

// Since reads the entries that a merchant created from a time on, with progress.
func Since(s *session.Session, p *merchant.Profile, since time.Time) iter.Seq2[*ledger.Entry, error] {
	return func(yield func(*ledger.Entry, error) bool) {
		count := 0
		since = session.Latest(since, p.CreatedAt)
		fmt.Fprintf(s.Stderr, "Reading the days of %s from %s.\n", p.Name, since.UTC().Format(time.DateOnly))
		for e, err := range Between(s, p, since, s.Now()) {
			if !yield(e, cmp.Or(err, s.Err())) {
				return
			}
			if count++; count%ReadProgress == 0 {
				fmt.Fprintf(s.Stderr, "%s: %d transactions read\n", e.CreatedAt.Format(time.DateOnly), count)
			}
		}
	}
}

// ReadProgress is the number of transactions between two lines of progress, also where all that is due is read.
const ReadProgress = 10000

// ProgressEvery is the number of transactions between two lines of progress.
const ProgressEvery = 100

// duePasses is how often Due reads the index.
const duePasses = 2

// Due reads the entries of the due index, each one once. The index is in the order of the due times. Between two pages
// an entry may become due earlier, so that it is on neither of them. The index also lags. So a second pass reads what
// the first one missed. Both miss only an entry that moves so during each of them.
func Due(s *session.Session) iter.Seq2[*ledger.Entry, error] {
	return entriesOf(func(yield func(Page, error) bool) {
		found := map[ledger.Key]bool{}
		for pass := range duePasses * ledger.DueShards {
			query := ledger.DueQuery{Shard: pass % ledger.DueShards, Limit: ledgerdynamo.MaxPage}
			query.Before = s.Now().Add(365 * session.Day)
			for more := true; more; more = query.Cursor != "" {
				page, next, err := s.Stores.Ledger.DueKeys(s, query)
				query.Cursor = next
				var keys []ledger.Key
				for _, due := range page {
					if !found[due.Key] {
						found[due.Key] = true
						keys = append(keys, due.Key)
					}
				}
				entries, err := readEntries(s, keys, err)
				if !yield(Page{Entries: entries}, err) {
					return
				}
			}
		}
	})
}

// Open reads all that is due, which has all that is unknown or parked, and then each merchant's entries since a
// time, for what has no timer. It yields each entry once.
func Open(s *session.Session, merchants []*merchant.Profile, since time.Time) iter.Seq2[*ledger.Entry, error] {
	return func(yield func(*ledger.Entry, error) bool) {
		sources := []iter.Seq2[*ledger.Entry, error]{Due(s)}
		for _, p := range merchants {
			sources = append(sources, Since(s, p, since))
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

// Change changes an entry, or returns why it refuses to.
type Change func(*ledger.Entry) (ledger.Transition, error)

// Always is the Change that refuses no entry.
func Always(change func(*ledger.Entry) ledger.Transition) Change {
	return func(e *ledger.Entry) (ledger.Transition, error) { return change(e), nil }
}

// Apply stores the change of an entry.
func Apply(s *session.Session, key ledger.Key, change Change) (*ledger.Entry, error) {
	book := &ledger.Book{Store: s.Stores.Ledger, Reader: s.Stores.Ledger, Now: s.Now, Rand: s.Rand}
	return book.Change(s, key, change)
}

// Resolve is Apply, and adjusts the merchant's daily amount.
func Resolve(s *session.Session, key ledger.Key, change Change) (dailyamount.StoredChange, error) {
	var refused error
	store := func(change func(*ledger.Entry) ledger.Transition) (*ledger.Entry, error) {
		return Apply(s, key, Always(change))
	}
	stored, err := s.Stores.DailyAmounts.StoreChange(s, store, func(e *ledger.Entry) (made ledger.Transition) {
		made, refused = change(e)
		return made.If(refused == nil)
	})
	if refused != nil {
		return dailyamount.StoredChange{}, refused
	}
	return stored, err
}
