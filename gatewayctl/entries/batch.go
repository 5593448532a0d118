package entries

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
)

// Limits of reading batches.
const (
	parallelBatches = 4                      // batches that are read at once
	maxReads        = 8                      // of a batch, while the table throttles
	firstWait       = 100 * time.Millisecond // before the second read; twice as long before each next one
)

// ReadBatches reads the entries of different keys by batches, several at once. It returns those that exist, in the
// order of the keys. It waits while the table throttles.
func ReadBatches(s *session.Session, keys []ledger.Key) ([]*ledger.Entry, error) {
	found := map[ledger.Key]*ledger.Entry{}
	batches := slices.Collect(slices.Chunk(keys, dynamoitem.MaxBatch))
	faults := make([]error, parallelBatches)
	var group sync.WaitGroup
	var mutex sync.Mutex
	for reader := range min(parallelBatches, len(batches)) {
		group.Go(func() {
			for i := reader; i < len(batches) && faults[reader] == nil; i += parallelBatches {
				left := batches[i]
				faults[reader] = Retry(s, func() (int, error) {
					read, unread, err := s.Stores.Batches.GetBatch(s, left)
					mutex.Lock()
					defer mutex.Unlock()
					maps.Copy(found, read)
					left = unread
					return len(left), err
				})
			}
		})
	}
	group.Wait()
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("read the transactions: %w", err)
	}
	entries := make([]*ledger.Entry, 0, len(keys))
	for _, key := range keys {
		if e := found[key]; e != nil {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// Retry reads until nothing is left, at most maxReads times.
func Retry(s *session.Session, read func() (left int, err error)) error {
	for attempt := range maxReads {
		left, err := read()
		if err != nil || left == 0 {
			return err
		}
		if err := cmp.Or(s.Stores.Sleep(s, firstWait<<attempt), s.Err()); err != nil {
			return err
		}
	}
	return errors.New("the table throttles reads: run the command again later")
}
