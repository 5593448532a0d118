package sweep

import (
	"context"
	"slices"
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
		p := &pass{Sweep: &Sweep{}, startedAt: time.Unix(1_800_000_000, 0)}
		own, _ := p.newShardReaders(part{Count: 1})
		r := own[0]
		first := r.read(t.Context(), emptyFirst{}, start)
		second := r.read(t.Context(), emptyFirst{}, start)
		if len(first) != 0 || len(second) != 1 || !r.done || r.err != nil {
			t.Errorf("start %d: pages %v and %v, done %v, %v", start, first, second, r.done, r.err)
		}
	}
}

// The parts of the template's schedules have each shard once. Any other event is for all shards.
func TestParts(t *testing.T) {
	p := &pass{Sweep: &Sweep{SweepInterval: time.Minute}, startedAt: time.Unix(1_800_000_000, 0)}
	for name, events := range map[string][]string{
		"one sweep":         {`{"part":0,"of":1}`},
		"two sweeps":        {`{"part":0,"of":2}`, `{"part":1,"of":2}`},
		"four sweeps":       {`{"part":0,"of":4}`, `{"part":1,"of":4}`, `{"part":2,"of":4}`, `{"part":3,"of":4}`},
		"EventBridge's own": {`{"version":"0","detail-type":"Scheduled Event","detail":{}}`},
		"no event":          {""},
		"too large":         {`{"part":4,"of":4}`},
		"negative":          {`{"part":-1,"of":4}`},
		"another type":      {`{"part":"1","of":4}`},
	} {
		t.Run(name, func(t *testing.T) {
			var shards []int
			for _, event := range events {
				own, others := p.newShardReaders(parsePart([]byte(event)))
				for _, r := range own {
					shards = append(shards, r.query.Shard)
				}
				if len(own)+len(others) != ledger.DueShards {
					t.Errorf("%s reads %d shards and %d of others, want all", event, len(own), len(others))
				}
				for _, r := range others {
					if late := p.startedAt.Sub(r.query.Before); late != time.Minute {
						t.Errorf("%s takes what is due for %s, want a minute", event, late)
					}
				}
			}
			slices.Sort(shards)
			if len(slices.Compact(slices.Clone(shards))) != ledger.DueShards || len(shards) != ledger.DueShards {
				t.Errorf("the shards %v, want each once", shards)
			}
		})
	}
}

// Every second pass starts at the oldest key. The others start at points that are spread over the whole range.
func TestStartPoints(t *testing.T) {
	p := &pass{Sweep: &Sweep{SweepInterval: time.Minute}}
	const passes = 64
	points := []int64{0, startPoints}
	for number := range passes {
		p.startedAt = time.Unix(1_800_000_000, 0).Add(time.Duration(number) * time.Minute)
		point := p.startPoint()
		if (point == 0) != (number%2 == 0) || point >= startPoints {
			t.Errorf("pass %d starts at %d", number, point)
		}
		if number%2 == 1 {
			points = append(points, point)
		}
	}
	slices.Sort(points)
	for i, point := range points[1:] {
		if gap := point - points[i]; gap > startPoints/12 {
			t.Errorf("no pass starts between %d and %d of %d", points[i], point, startPoints)
		}
	}
}

// A job starts while the longest delivery and its write still fit into the invocation.
func TestOutOfTime(t *testing.T) {
	deadline := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	for remaining, want := range map[time.Duration]bool{
		startMargin - storeMargin: false, startMargin - storeMargin - time.Nanosecond: true,
	} {
		p := &pass{Sweep: &Sweep{Now: func() time.Time { return deadline.Add(-remaining) }}}
		if got := p.outOfTime(ctx); got != want {
			t.Errorf("with %s left: out of time %v, want %v", remaining, got, want)
		}
	}
}
