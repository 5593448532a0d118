package sweep

import (
	"context"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// emptyFirst is a queue whose first page has no keys that can be decoded, but a cursor.
type emptyFirst struct{ ledger.DueQueue }

func (emptyFirst) DueKeys(_ context.Context, query ledger.DueQuery) (page []ledger.DueKey, cursor string, err error) {
	if query.Cursor == "" {
		return nil, "next", nil
	}
	return []ledger.DueKey{{Key: keyOf("Shop_1"), DueAt: query.Before}}, "", nil
}

// A page without keys does not end a shard, at any start point.
func TestEmptyPage(t *testing.T) {
	for _, start := range []int64{0, startPoints / 2} {
		r := newShardReaders(time.Unix(1_800_000_000, 0))[0]
		first := r.read(t.Context(), emptyFirst{}, start)
		second := r.read(t.Context(), emptyFirst{}, start)
		if len(first) != 0 || len(second) != 1 || !r.done || r.err != nil {
			t.Errorf("start %d: pages %v and %v, done %v, %v", start, first, second, r.done, r.err)
		}
	}
}
