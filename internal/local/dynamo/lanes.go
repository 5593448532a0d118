package dynamo

import (
	"context"
	"hash/fnv"
	"slices"

	"mobilegateway/internal/local/file"
	"mobilegateway/internal/template"
)

// laneLength is how many pages a lane queues before the pump stops reading.
const laneLength = 100

// A lane delivers records in order, in parallel to the other lanes. All records of an item are in the same lane, so a
// slow item delays only its own lane. The checkpoint of a shard is the record before the oldest one that is not done.

// enqueue puts the matching records of a page into their lanes, in order, and marks the others as done.
func (p *Pump) enqueue(ctx context.Context, shard string, page []map[string]any) error {
	var records, matching, others []*record
	for _, raw := range page {
		r := newRecord(raw)
		records = append(records, r)
		matches := func(filter template.Filter) bool { return filter.Matches(raw) }
		if len(p.Stream.Filters) == 0 || slices.ContainsFunc(p.Stream.Filters, matches) {
			matching = append(matching, r)
		} else {
			others = append(others, r)
		}
	}
	p.lastRead[shard] = records[len(records)-1].sequence
	p.mutex.Lock()
	p.pending[shard] = append(p.pending[shard], records...)
	p.mutex.Unlock()
	for lane, records := range p.splitByLane(matching) {
		select {
		case p.queues[lane] <- records:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return p.markDone(others)
}

// splitByLane groups records by the lane of their item.
func (p *Pump) splitByLane(records []*record) map[uint32][]*record {
	sorted := map[uint32][]*record{}
	for _, r := range records {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(r.key))
		lane := hash.Sum32() % uint32(len(p.queues)) //nolint:gosec // G115: a handful of lanes
		sorted[lane] = append(sorted[lane], r)
	}
	return sorted
}

// deliver delivers the records of a lane, batch by batch, until ctx ends.
func (p *Pump) deliver(ctx context.Context, queue chan []*record) {
	for {
		select {
		case <-ctx.Done():
			return
		case records := <-queue:
			for batch := range slices.Chunk(records, max(p.Stream.BatchSize, 1)) {
				if p.deliverBatch(ctx, batch) != nil {
					return
				}
				if err := p.markDone(batch); err != nil {
					p.Logf("stream of %s: %v", p.Table, err)
				}
			}
		}
	}
}

// markDone marks records as done and saves the checkpoint if it has moved.
func (p *Pump) markDone(batch []*record) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, r := range batch {
		r.done = true
	}
	moved := false
	for shard, pending := range p.pending {
		for len(pending) > 0 && pending[0].done {
			p.state.Shards[shard] = pending[0].sequence
			pending = pending[1:]
			moved = true
		}
		p.pending[shard] = pending
	}
	if !moved {
		return nil
	}
	return file.ReplaceJSON(p.Checkpoint, p.state)
}
