// Package ledgermem is a model of the ledger's store in memory: the same contract as the table, and on demand the faults
// that a table has (a lost answer, a write of another's in between, an error). Tests of the flows and the deterministic
// simulator build on it.
//
// It never ships. Its invariant: what it hands out and what it was handed never share memory with what it holds, and
// without faults it passes the conformance suite of ledgertest.
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

// Store holds entries in a map. Make one with New; any number of goroutines may use it.
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

// Insert is ledger.Writer's.
func (s *Store) Insert(ctx context.Context, e *ledger.Entry) (*ledger.Entry, error) {
	var existing *ledger.Entry
	err := s.runWithFault(ctx, Call{Operation: Insert, Key: e.Key, Entry: e}, func() error {
		existing = nil
		stored := s.entries[e.Key]
		switch {
		case stored == nil || stored.PastRetention(e.UpdatedAt):
			s.entries[e.Key] = e.Clone()
		case e.Writer == "" || stored.Writer != e.Writer || stored.Version != e.Version:
			existing = stored.Clone()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return existing, nil
}

// Replace is ledger.Writer's.
func (s *Store) Replace(ctx context.Context, e *ledger.Entry) (*ledger.Entry, error) {
	var existing *ledger.Entry
	err := s.runWithFault(ctx, Call{Operation: Replace, Key: e.Key, Entry: e}, func() error {
		existing = nil
		stored := s.entries[e.Key]
		switch {
		case stored == nil:
			return ledger.ErrNotFound
		case stored.Version == e.Version-1:
			s.entries[e.Key] = e.Clone()
		case e.Writer == "" || stored.Writer != e.Writer || stored.Version != e.Version:
			existing = stored.Clone()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return existing, nil
}

// ClaimReference is ledger.Writer's.
func (s *Store) ClaimReference(ctx context.Context, merchantID, referenceCode, chargeID string) (string, error) {
	id := ledger.ReferenceID(merchantID, referenceCode)
	ownerID := ""
	key := ledger.Key{Kind: ledger.Reference, ID: id}
	err := s.runWithFault(ctx, Call{Operation: ClaimReference, Key: key}, func() error {
		if s.references[id] == "" {
			s.references[id] = chargeID
		}
		ownerID = s.references[id]
		return nil
	})
	if err != nil {
		return "", err
	}
	return ownerID, nil
}

// Get is ledger.Reader's.
func (s *Store) Get(ctx context.Context, key ledger.Key) (*ledger.Entry, error) {
	var found *ledger.Entry
	err := s.runWithFault(ctx, Call{Operation: Get, Key: key}, func() error {
		found = s.entries[key].Clone()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// DueKeys is ledger.Queue's. This index never lags.
func (s *Store) DueKeys(ctx context.Context, shard int, before time.Time, limit int) ([]ledger.Key, error) {
	var keys []ledger.Key
	err := s.runWithFault(ctx, Call{Operation: DueKeys}, func() error {
		due := s.sortedKeys(func(e *ledger.Entry) bool {
			return !e.DueAt.IsZero() && !e.DueAt.After(before) && ledger.DueShard(e.Key) == shard
		}, func(a, b *ledger.Entry) int {
			return cmp.Or(a.DueAt.Compare(b.DueAt), strings.Compare(a.Key.String(), b.Key.String()))
		})
		keys = due[:min(len(due), limit)]
		return nil
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

// Day is ledger.Journal's. The cursor is the DaySort of the last entry of the page before.
func (s *Store) Day(ctx context.Context, merchantID string, day time.Time, cursor string, limit int) ([]ledger.Key, string, error) {
	var keys []ledger.Key
	next := ""
	err := s.runWithFault(ctx, Call{Operation: Day}, func() error {
		partition := ledger.MerchantDay(merchantID, day)
		keys = s.sortedKeys(func(e *ledger.Entry) bool {
			return partition != "" && ledger.MerchantDay(e.MerchantID, e.CreatedAt) == partition && e.DaySort() > cursor
		}, func(a, b *ledger.Entry) int { return strings.Compare(a.DaySort(), b.DaySort()) })
		if len(keys) > limit {
			keys = keys[:limit]
			next = s.entries[keys[limit-1]].DaySort()
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return keys, next, nil
}

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

// All returns a copy of every entry, in the order of the keys: for a simulator's invariants.
func (s *Store) All() []*ledger.Entry {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	keys := s.sortedKeys(func(*ledger.Entry) bool { return true }, func(a, b *ledger.Entry) int {
		return strings.Compare(a.Key.String(), b.Key.String())
	})
	entries := make([]*ledger.Entry, len(keys))
	for i, key := range keys {
		entries[i] = s.entries[key].Clone()
	}
	return entries
}

// Overwrite places an entry as it is, whatever was there: for tests that begin in the middle of a life.
func (s *Store) Overwrite(e *ledger.Entry) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.entries[e.Key] = e.Clone()
}
