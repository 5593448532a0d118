package dynamo

import (
	"context"
	"hash/fnv"
	"slices"
	"sync"

	"mobilegateway/internal/local/file"
)

// laneLength is how many pages a lane queues before the pump stops reading.
const laneLength = 100

// lanes deliver records in parallel. All records of an item are in the same lane, in order, so a slow item delays only
// its own lane. The checkpoint of a shard is the record before the oldest one that is not done.
type lanes struct {
	pump   *Pump
	queues []chan []*record

	mutex   sync.Mutex
	pending map[string][]*record // by shard: read and not yet passed by the checkpoint, oldest first
}

// start starts the lanes. They end with ctx; the returned function waits for that.
func (l *lanes) start(ctx context.Context) (wait func()) {
	var group sync.WaitGroup
	for range max(l.pump.Stream.ParallelizationFactor, 1) {
		queue := make(chan []*record, laneLength)
		l.queues = append(l.queues, queue)
		group.Go(func() { l.deliver(ctx, queue) })
	}
	return group.Wait
}

// enqueue puts the matching records of a page into their lanes and marks the others as done.
func (l *lanes) enqueue(ctx context.Context, shard string, page, matching []*record) error {
	l.mutex.Lock()
	l.pending[shard] = append(l.pending[shard], page...)
	l.mutex.Unlock()
	for lane, records := range l.splitByLane(matching) {
		select {
		case l.queues[lane] <- records:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return l.markDone(slices.DeleteFunc(slices.Clone(page), func(r *record) bool {
		return slices.Contains(matching, r)
	}))
}

// splitByLane groups records by the lane of their item.
func (l *lanes) splitByLane(records []*record) map[uint32][]*record {
	sorted := map[uint32][]*record{}
	for _, r := range records {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(r.key))
		lane := hash.Sum32() % uint32(len(l.queues)) //nolint:gosec // G115: a handful of lanes
		sorted[lane] = append(sorted[lane], r)
	}
	return sorted
}

// deliver delivers the records of a lane, batch by batch, until ctx ends.
func (l *lanes) deliver(ctx context.Context, queue chan []*record) {
	for {
		select {
		case <-ctx.Done():
			return
		case records := <-queue:
			for batch := range slices.Chunk(records, max(l.pump.Stream.BatchSize, 1)) {
				if l.pump.deliverBatch(ctx, batch) != nil {
					return
				}
				if err := l.markDone(batch); err != nil {
					l.pump.Logf("stream of %s: %v", l.pump.Table, err)
				}
			}
		}
	}
}

// markDone marks records as done and saves the checkpoint if it has moved.
func (l *lanes) markDone(batch []*record) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, r := range batch {
		r.done = true
	}
	moved := false
	for shard, pending := range l.pending {
		for len(pending) > 0 && pending[0].done {
			l.pump.state.Shards[shard] = pending[0].sequence
			pending = pending[1:]
			moved = true
		}
		l.pending[shard] = pending
	}
	if !moved {
		return nil
	}
	return file.ReplaceJSON(l.pump.Checkpoint, l.pump.state)
}
