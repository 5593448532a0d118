package streams

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"mobilegateway/internal/file"
	"mobilegateway/shared/pause"
	"mobilegateway/world/lambda"
	"mobilegateway/world/template"
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

// retryPause is the wait before the first retry of a failed batch. It doubles up to maxRetryPause.
const (
	retryPause    = 100 * time.Millisecond
	maxRetryPause = 2 * time.Second
)

// creationPrecision is the error of a record's creation time. DynamoDB rounds down to the second, DynamoDB Local to the
// minute.
const creationPrecision = time.Minute

// deliverBatch invokes the function until each record of a batch is processed, too old or out of retries. It returns an
// error only when ctx has ended.
func (p *Pump) deliverBatch(ctx context.Context, batch []*record) error {
	wait := retryPause
	for retries := 0; ; retries++ {
		batch = p.dropExpired(batch)
		if len(batch) == 0 {
			return nil
		}
		left, batchFailed := p.invoke(ctx, batch)
		if ctx.Err() != nil || len(left) == 0 {
			return ctx.Err()
		}
		if batchFailed && p.Stream.BisectOnError && len(left) > 1 {
			middle := len(left) / 2
			if err := p.deliverBatch(ctx, left[:middle]); err != nil {
				return err
			}
			return p.deliverBatch(ctx, left[middle:])
		}
		if p.Stream.MaxRetryAttempts >= 0 && retries >= p.Stream.MaxRetryAttempts {
			p.Logf("stream of %s: %d records dropped after %d attempts; see the function's log",
				p.Table, len(left), retries+1)
			return nil
		}
		batch = left
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, maxRetryPause)
	}
}

// dropExpired removes the records that are certainly older than the template allows.
func (p *Pump) dropExpired(batch []*record) []*record {
	if p.Stream.MaxRecordAge == 0 {
		return batch
	}
	oldest := p.Now().Add(-p.Stream.MaxRecordAge - creationPrecision)
	left := slices.DeleteFunc(slices.Clone(batch), func(r *record) bool {
		return !r.created.IsZero() && r.created.Before(oldest)
	})
	if old := len(batch) - len(left); old > 0 {
		p.Logf("stream of %s: %d records dropped: older than %s", p.Table, old, p.Stream.MaxRecordAge)
	}
	return left
}

// invoke invokes the function once. It returns the records to retry, and whether the batch failed as a whole.
func (p *Pump) invoke(ctx context.Context, batch []*record) (left []*record, batchFailed bool) {
	result, err := p.Function.Invoke(ctx, lambda.Event{Payload: p.encodeEvent(batch)})
	if err != nil || result.FunctionError {
		return batch, true
	}
	if !p.Stream.ReportsItemFailures || len(result.Payload) == 0 {
		return nil, false
	}
	var response struct {
		BatchItemFailures []struct {
			ItemIdentifier string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(result.Payload, &response); err != nil {
		return batch, true
	}
	first := len(batch)
	for _, failure := range response.BatchItemFailures {
		i := slices.IndexFunc(batch, func(r *record) bool { return r.sequence == failure.ItemIdentifier })
		if i < 0 {
			return batch, true // as Lambda does: an unknown or empty identifier fails the whole batch
		}
		first = min(first, i)
	}
	return batch[first:], false
}

func (p *Pump) encodeEvent(batch []*record) []byte {
	var records []map[string]any
	for _, r := range batch {
		raw := maps.Clone(r.raw)
		raw["eventSourceARN"] = p.state.Stream
		records = append(records, raw)
	}
	document, _ := json.Marshal(map[string]any{"Records": records}) // the records came as JSON
	return document
}
