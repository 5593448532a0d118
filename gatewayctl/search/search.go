// Package search finds transactions by what a person can say about them: a merchant, an operator, an amount, an hour,
// the last digits of a number. It is the one search of gatewayctl find and of the console.
//
// It reads the day index of the merchants, which has only keys, from the newest key to the oldest, and the entries by
// batches. It has no index and no attribute of its own, and never scans the ledger's table. Its invariant: a page makes
// at most MaxCalls calls, and the pages of one search have each transaction at most once, in the order of creation.
package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/merchant"
)

// Limits of a page.
const (
	MaxCalls = 20  // calls of DynamoDB
	MaxRows  = 100 // transactions

	batchSize  = dynamoitem.MaxBatch // entries that one call reads
	maxBatches = 4                   // that are read at once
)

// Store is the part of the ledger that a search reads.
type Store interface {
	ledger.DayIndex

	// GetBatch reads up to 100 entries in one call. unread are the keys that the table did not read.
	GetBatch(ctx context.Context, keys []ledger.Key) (
		found map[ledger.Key]*ledger.Entry, unread []ledger.Key, err error)
}

// Merchants returns the merchants of a search, and how many calls this took. A continued search does not call it.
type Merchants func() (profiles []*merchant.Profile, calls int, err error)

// Query is one page of a search. Since and Until are texts as of ParseRange.
type Query struct {
	Filter
	Since, Until string
	Continue     string // of the page before, "" for the first page
	Now          time.Time
}

// Page is a page of a search, the newest transaction first.
type Page struct {
	Entries []*ledger.Entry
	Range   Range
	// SearchedUntil is how far back the range was searched: each selected transaction after it is on this page or on
	// one before it.
	SearchedUntil time.Time
	Continue      string // of the next page, "" if the whole range was searched
	Calls         int    // of DynamoDB
	Throttled     bool   // the page ended early, because the table did not read all entries
}

// errThrottled is the error of a page that could not read one entry.
var errThrottled = errors.New("the ledger's table throttles reads: search again in some seconds")

// Find searches one page. A wrong query is an output.ErrUsage.
func Find(ctx context.Context, store Store, merchants Merchants, q Query) (Page, error) {
	r := &run{Context: ctx, store: store, filter: q.Filter}
	if err := q.Check(); err != nil {
		return Page{}, output.UsageError("%w", err)
	}
	if err := r.begin(q, merchants); err != nil {
		return Page{}, err
	}
	if err := r.readPage(); err != nil {
		return Page{}, err
	}
	if r.page.Throttled && r.searched == 0 {
		return Page{}, errThrottled
	}
	r.end()
	return r.page, nil
}

// run is the work of one page.
type run struct {
	context.Context
	store    Store
	filter   Filter
	page     Page
	at       position     // its Day and Partitions are those of the page before until the end
	parts    []*partition // of the day that is read
	searched int          // entries
}

// begin sets where the page begins: at the end of the range, or where the page before ended.
func (r *run) begin(q Query, merchants Merchants) error {
	wanted, err := ParseRange(q.Since, q.Until, q.Now)
	if q.Continue != "" {
		return r.resume(q)
	}
	if err != nil {
		return output.UsageError("%w", err)
	}
	profiles, calls, err := merchants()
	if err != nil {
		return err
	}
	slices.SortFunc(profiles, func(a, b *merchant.Profile) int { return strings.Compare(a.ID, b.ID) })
	r.page.Calls, r.page.Range = calls, wanted
	r.at = position{
		Version: positionVersion, Filter: q.identity(),
		Since: wanted.Since.UnixMilli(), Until: wanted.Until.UnixMilli(),
	}
	for _, p := range profiles {
		r.at.Merchants = append(r.at.Merchants, merchantAt{p.ID, p.ReadDayShards()})
	}
	r.beginDay(wanted.Until.Add(-time.Millisecond).Truncate(day))
	return nil
}

// resume begins where the page before ended. A time range that is given again must be that of the search.
func (r *run) resume(q Query) (err error) {
	if r.at, err = decodePosition(q.Continue, q.Filter); err != nil {
		return output.UsageError("%w", err)
	}
	r.page.Range = Range{time.UnixMilli(r.at.Since).UTC(), time.UnixMilli(r.at.Until).UTC()}
	since, sinceErr := ParseSpan(q.Since, q.Now)
	until, untilErr := ParseSpan(q.Until, q.Now)
	isOther := q.Since != "" && (sinceErr != nil || !since.Begin.Equal(r.page.Range.Since)) ||
		q.Until != "" && (untilErr != nil || until.End.Before(r.page.Range.Until))
	if isOther {
		return output.UsageError("%w", errOtherSearch)
	}
	r.beginDay(time.UnixMilli(r.at.Day).UTC())
	for i, s := range r.at.Partitions {
		part := r.parts[i]
		part.cursor, part.next, part.ended = s.Cursor, s.Cursor, s.Ended
		part.bound = time.UnixMilli(r.at.Day + s.Bound).UTC()
	}
	return nil
}

// beginDay begins all partitions of a day at its end, or at the end of the range.
func (r *run) beginDay(begin time.Time) {
	r.at.Day, r.parts = begin.UnixMilli(), nil
	last := begin.Add(day)
	if r.page.Range.Until.Before(last) {
		last = r.page.Range.Until
	}
	for _, m := range r.at.Merchants {
		for shard := range max(1, m.Shards) {
			r.parts = append(r.parts, &partition{merchantID: m.ID, shard: shard, bound: last.Add(-time.Millisecond)})
		}
	}
}

// readPage reads batches of entries until the page is full, the calls are used up or the range is searched. The first
// batch is small: without a filter it fills the page.
func (r *run) readPage() error {
	for batches := 1; ; batches = min(2*batches, maxBatches) {
		taken, err := r.takeKeys(batches * batchSize)
		if err != nil || len(taken) == 0 {
			return err
		}
		found, unread, err := r.readEntries(taken)
		if err != nil {
			return err
		}
		for _, t := range taken {
			if unread[t.key] {
				r.page.Throttled = true
				return nil
			}
			t.part.searched()
			r.searched++
			e := found[t.key]
			if e != nil && r.filter.matches(e) {
				r.page.Entries = append(r.page.Entries, e)
			}
			if len(r.page.Entries) == MaxRows {
				return nil
			}
		}
	}
}

// takenKey is a key in a batch, and the partition that it is from.
type takenKey struct {
	key  ledger.Key
	part *partition
}

// takeKeys takes the next keys of one day, the newest first. It takes none at the end of the range, and without calls
// to read them.
func (r *run) takeKeys(count int) (taken []takenKey, err error) {
	for len(taken) < count {
		newest, unknown := r.newestPartitions()
		switch {
		case newest == nil && len(taken) > 0:
			return taken, nil
		case newest == nil:
			before := time.UnixMilli(r.at.Day).UTC().Add(-day)
			if len(r.at.Merchants) == 0 || before.Add(day).Compare(r.page.Range.Since) <= 0 {
				return nil, nil
			}
			r.beginDay(before)
		case len(unknown) > 0:
			left := MaxCalls - r.page.Calls - max(1, batchesOf(len(taken)))
			if left <= 0 {
				return taken, nil
			}
			if err := r.readKeys(unknown[:min(left, len(unknown))]); err != nil {
				return nil, err
			}
		case r.page.Calls+batchesOf(len(taken)+1) > MaxCalls:
			return taken, nil
		default:
			taken = append(taken, takenKey{newest.ready[newest.taken].Key, newest})
			newest.taken++
		}
	}
	return taken, nil
}

// newestPartitions returns the partition with the newest next key, nil at the end of the day. unknown are those that
// must be read first, because a key of theirs may be as new.
func (r *run) newestPartitions() (newest *partition, unknown []*partition) {
	var newestAt time.Time
	for _, part := range r.parts {
		at, _, exists := part.newest()
		if exists && (newest == nil || at.After(newestAt)) {
			newest, newestAt = part, at
		}
	}
	for _, part := range r.parts {
		if at, known, exists := part.newest(); exists && !known && at.Equal(newestAt) {
			unknown = append(unknown, part)
		}
	}
	return newest, unknown
}

// batchesOf is how many calls read this many entries.
func batchesOf(entries int) int { return (entries + batchSize - 1) / batchSize }

// readKeys reads the next keys of partitions, concurrently.
func (r *run) readKeys(parts []*partition) error {
	begin := time.UnixMilli(r.at.Day).UTC()
	from := begin
	if r.page.Range.Since.After(begin) {
		from = r.page.Range.Since
	}
	last := begin.Add(day)
	if r.page.Range.Until.Before(last) {
		last = r.page.Range.Until
	}
	r.page.Calls += len(parts)
	return concurrently(len(parts), func(i int) (err error) {
		part := parts[i]
		part.taken = len(part.ready)
		var keys []ledger.DayKey
		keys, part.next, err = r.store.Day(r, ledger.DayQuery{
			MerchantID: part.merchantID, Day: begin, Shard: part.shard, From: from, Last: last.Add(-time.Millisecond),
			Newest: true, Cursor: part.next, Limit: ledgerdynamo.MaxPage,
		})
		part.ready, part.ended = append(part.ready, keys...), part.next == ""
		return err
	})
}

// readEntries reads the entries of a batch by several calls at once.
func (r *run) readEntries(taken []takenKey) (
	found map[ledger.Key]*ledger.Entry, unread map[ledger.Key]bool, err error,
) {
	found, unread = map[ledger.Key]*ledger.Entry{}, map[ledger.Key]bool{}
	batches := slices.Collect(slices.Chunk(taken, batchSize))
	r.page.Calls += len(batches)
	var mutex sync.Mutex
	err = concurrently(len(batches), func(i int) error {
		var keys []ledger.Key
		for _, t := range batches[i] {
			keys = append(keys, t.key)
		}
		entries, left, err := r.store.GetBatch(r, keys)
		mutex.Lock()
		defer mutex.Unlock()
		for _, e := range entries {
			found[e.Key] = e
		}
		for _, key := range left {
			unread[key] = true
		}
		return err
	})
	return found, unread, err
}

// concurrently makes calls at once, and joins their errors.
func concurrently(count int, call func(i int) error) error {
	faults := make([]error, count)
	var group sync.WaitGroup
	for i := range count {
		group.Go(func() { faults[i] = call(i) })
	}
	group.Wait()
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("search: %w", err)
	}
	return nil
}

// end sets how far the page came, and the continuation if the range has more.
func (r *run) end() {
	r.at.Partitions = nil
	for _, part := range r.parts {
		r.at.Partitions = append(r.at.Partitions, part.progress())
	}
	until := time.Time{}
	for _, part := range r.parts {
		if at, _, exists := part.newest(); exists && at.After(until) {
			until = at
		}
	}
	isLastDay := time.UnixMilli(r.at.Day).Compare(r.page.Range.Since) <= 0
	switch {
	case until.IsZero() && (isLastDay || len(r.parts) == 0):
		r.page.SearchedUntil = r.page.Range.Since
		return
	case until.IsZero():
		until = time.UnixMilli(r.at.Day).UTC()
	}
	r.page.SearchedUntil, r.page.Continue = until, r.at.encode()
}
