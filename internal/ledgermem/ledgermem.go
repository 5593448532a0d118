// Package ledgermem is an in-memory ledger store for tests, with the table's contract and its faults on demand: an
// error, a lost response, a concurrent write. Tests of the flows and the deterministic simulator use it.
//
// It never ships. Its invariant: it shares no entry with its callers, and without faults it passes the conformance
// suite of ledgertest.
package ledgermem

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"mobilegateway/shared/ledger"
)

// Store keeps entries in a map. Make one with New; any number of goroutines may use it.
type Store struct {
	mutex            sync.Mutex
	entries          map[ledger.Key]*ledger.Entry
	references       map[string]string
	injector         func(Call) InjectedFault
	callCounts       map[Operation]int
	concurrentWrites int
}

var (
	_ ledger.Writer   = (*Store)(nil)
	_ ledger.Reader   = (*Store)(nil)
	_ ledger.DueQueue = (*Store)(nil)
	_ ledger.DayIndex = (*Store)(nil)
)

// New makes an empty store without faults.
func New() *Store {
	return &Store{
		entries:    map[ledger.Key]*ledger.Entry{},
		references: map[string]string{},
		callCounts: map[Operation]int{},
	}
}

// Insert implements ledger.Writer.
func (s *Store) Insert(ctx context.Context, e *ledger.Entry) (*ledger.Entry, error) {
	return s.put(ctx, Insert, e, func(stored *ledger.Entry) (bool, error) {
		return stored == nil || stored.PastRetention(e.UpdatedAt), nil
	})
}

// Replace implements ledger.Writer.
func (s *Store) Replace(ctx context.Context, e *ledger.Entry) (*ledger.Entry, error) {
	return s.put(ctx, Replace, e, func(stored *ledger.Entry) (bool, error) {
		if stored == nil {
			return false, ledger.ErrNotFound
		}
		return stored.Version == e.Version-1, nil
	})
}

// put stores an entry if the condition is true of the stored one, and else returns that one. An own write counts as
// done.
func (s *Store) put(
	ctx context.Context, operation Operation, e *ledger.Entry, condition func(stored *ledger.Entry) (bool, error),
) (*ledger.Entry, error) {
	return runWithFault(ctx, s, Call{Operation: operation, Key: e.Key, Entry: e}, func() (*ledger.Entry, error) {
		stored := s.entries[e.Key]
		met, err := condition(stored)
		switch {
		case err != nil:
			return nil, err
		case met:
			s.entries[e.Key] = e.Clone()
		case e.Writer == "" || stored.Writer != e.Writer || stored.Version != e.Version:
			return stored.Clone(), nil
		}
		return nil, nil
	})
}

// ClaimReference implements ledger.Writer.
func (s *Store) ClaimReference(ctx context.Context, merchantID, referenceCode, chargeID string) (string, error) {
	id := ledger.ReferenceID(merchantID, referenceCode)
	call := Call{Operation: ClaimReference, Key: ledger.Key{Kind: ledger.Reference, ID: id}}
	return runWithFault(ctx, s, call, func() (string, error) {
		s.references[id] = cmp.Or(s.references[id], chargeID)
		return s.references[id], nil
	})
}

// Get implements ledger.Reader.
func (s *Store) Get(ctx context.Context, key ledger.Key) (*ledger.Entry, error) {
	return runWithFault(ctx, s, Call{Operation: Get, Key: key}, func() (*ledger.Entry, error) {
		return s.entries[key].Clone(), nil
	})
}

// DueKeys implements ledger.DueQueue. This index never lags.
func (s *Store) DueKeys(ctx context.Context, shard int, before time.Time, limit int) ([]ledger.Key, error) {
	return runWithFault(ctx, s, Call{Operation: DueKeys}, func() ([]ledger.Key, error) {
		due := s.sortedKeys(func(e *ledger.Entry) bool {
			return !e.DueAt.IsZero() && !e.DueAt.After(before) && ledger.DueShard(e.Key) == shard
		}, func(a, b *ledger.Entry) int { return cmp.Or(a.DueAt.Compare(b.DueAt), compareKeys(a, b)) })
		return due[:min(len(due), limit)], nil
	})
}

// Day implements ledger.DayIndex.
func (s *Store) Day(
	ctx context.Context, merchantID string, day time.Time, cursor string, limit int,
) (keys []ledger.Key, next string, err error) {
	keys, err = runWithFault(ctx, s, Call{Operation: Day}, func() ([]ledger.Key, error) {
		partition := ledger.MerchantDay(merchantID, day)
		keys := s.sortedKeys(func(e *ledger.Entry) bool {
			inDay := partition != "" && ledger.MerchantDay(e.MerchantID, e.CreatedAt) == partition
			return inDay && cursorOf(e) > cursor
		}, func(a, b *ledger.Entry) int { return strings.Compare(cursorOf(a), cursorOf(b)) })
		if len(keys) > limit {
			keys = keys[:limit]
			next = cursorOf(s.entries[keys[limit-1]])
		}
		return keys, nil
	})
	return keys, next, err
}

// cursorOf is the cursor of Day after an entry.
func cursorOf(e *ledger.Entry) string { return e.DaySort() + "#" + e.Key.String() }

func compareKeys(a, b *ledger.Entry) int { return strings.Compare(a.Key.String(), b.Key.String()) }

// sortedKeys lists the keys of the entries that match, in an order.
func (s *Store) sortedKeys(match func(*ledger.Entry) bool, compare func(a, b *ledger.Entry) int) []ledger.Key {
	var found []*ledger.Entry
	for _, e := range s.entries {
		if match(e) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, compare)
	keys := make([]ledger.Key, len(found))
	for i, e := range found {
		keys[i] = e.Key
	}
	return keys
}

// All returns a copy of every entry in the order of the keys, for a simulator's invariants.
func (s *Store) All() []*ledger.Entry {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	entries := make([]*ledger.Entry, 0, len(s.entries))
	for _, e := range s.entries {
		entries = append(entries, e.Clone())
	}
	slices.SortFunc(entries, compareKeys)
	return entries
}

// Overwrite stores an entry without any condition, for tests that begin in the middle of a life.
func (s *Store) Overwrite(e *ledger.Entry) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.entries[e.Key] = e.Clone()
}
