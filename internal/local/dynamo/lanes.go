package dynamo

import (
	"context"
	"hash/fnv"
	"slices"
	"sync"
)

// laneLength is how many pages wait in a lane before the pump stops to read.
const laneLength = 100

// lanes hand records on side by side: those of one item in one lane, in their order, so that a function which is held
// up by one item does not hold up the others. The checkpoint of a shard follows the oldest record that is not done.
type lanes struct {
	pump   *Pump
	queues []chan []*record

	mutex sync.Mutex
	open  map[string][]*record // by shard: taken and not yet behind the checkpoint, oldest first
}

func newLanes(p *Pump) *lanes {
	l := &lanes{pump: p, open: map[string][]*record{}}
	for range max(p.Stream.ParallelizationFactor, 1) {
		l.queues = append(l.queues, make(chan []*record, laneLength))
	}
	return l
}

// run starts the lanes; the function it returns waits for them, once ctx has ended.
func (l *lanes) run(ctx context.Context) (wait func()) {
	var group sync.WaitGroup
	for _, queue := range l.queues {
		group.Go(func() { l.serve(ctx, queue) })
	}
	return group.Wait
}

// take puts the records of a page into their lanes. Those that no filter lets pass are done at once.
func (l *lanes) take(ctx context.Context, shard string, page, passing []*record) error {
	l.mutex.Lock()
	l.open[shard] = append(l.open[shard], page...)
	l.mutex.Unlock()
	for lane, records := range l.split(passing) {
		select {
		case l.queues[lane] <- records:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return l.finish(slices.DeleteFunc(slices.Clone(page), func(r *record) bool { return slices.Contains(passing, r) }))
}

// split sorts records by lane, which their item's key decides.
func (l *lanes) split(records []*record) map[uint32][]*record {
	sorted := map[uint32][]*record{}
	for _, r := range records {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(r.key))
		lane := hash.Sum32() % uint32(len(l.queues)) //nolint:gosec // G115: a handful of lanes
		sorted[lane] = append(sorted[lane], r)
	}
	return sorted
}

// serve hands a lane's records on, batch by batch.
func (l *lanes) serve(ctx context.Context, queue chan []*record) {
	for {
		select {
		case <-ctx.Done():
			return
		case records := <-queue:
			for batch := range slices.Chunk(records, max(l.pump.Stream.BatchSize, 1)) {
				if l.pump.deliverBatch(ctx, batch) != nil {
					return
				}
				if err := l.finish(batch); err != nil {
					l.pump.Logf("stream of %s: %v", l.pump.Table, err)
				}
			}
		}
	}
}

// finish marks records as done, and saves the checkpoint where it moves.
func (l *lanes) finish(batch []*record) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	moved := false
	for _, r := range batch {
		r.done = true
	}
	for shard, open := range l.open {
		through := slices.IndexFunc(open, func(r *record) bool { return !r.done })
		if through < 0 {
			through = len(open)
		}
		if through == 0 {
			continue
		}
		l.pump.state.Shards[shard] = open[through-1].sequence
		l.open[shard] = open[through:]
		moved = true
	}
	if !moved {
		return nil
	}
	return l.pump.save()
}
