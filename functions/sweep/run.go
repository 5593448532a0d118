package sweep

import (
	"context"
	"sync"
	"sync/atomic"

	"mobilegateway/shared/ledger"
)

// workers is the number of entries that are read and changed concurrently. Workers make no outside calls.
const workers = 32

// Invoke implements lambda.Handler of aws-lambda-go: it runs one sweep. The event may name its part of the shards. It
// returns an error, for the alarm, if a shard cannot be read; the other shards are processed.
func (s *Sweep) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	if deadline, hasDeadline := ctx.Deadline(); hasDeadline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-storeMargin))
		defer cancel()
	}
	share := parsePart(event)
	courier := *s.Courier
	courier.Health = &recentHealth{HealthStore: s.Courier.Health, now: s.Now}
	p := &pass{Sweep: s, startedAt: s.Now(), courier: &courier, slots: slotTable{sweeps: share.Count}}
	p.jobs = p.newJobs()
	if s.Circuits != nil {
		s.ReadCircuits(ctx)
	}
	own, others := p.newShardReaders(share)
	p.processShards(ctx, own)
	p.processShards(ctx, others)
	p.finishCalls(ctx)
	s.Circuits.Wait()
	s.Courier.Sender.CloseIdle()
	return []byte(`{}`), readErrors(append(own, others...))
}

// processShards processes the due keys of some shards, while there is time. Outside calls may still run when it
// returns.
func (p *pass) processShards(ctx context.Context, readers []*shardReader) {
	for more := len(readers) > 0; more && !p.outOfTime(ctx); {
		var keys []ledger.Key
		keys, more = p.readPages(ctx, readers)
		p.runWorkers(ctx, append(keys, p.takeReturned()...))
	}
}

// finishCalls waits for the outside calls, and processes the keys that they have returned. Only the end of a pass waits
// for calls: lookups may wait for the rate of their account as long as the pass has time.
func (p *pass) finishCalls(ctx context.Context) {
	for p.calls.Wait(); !p.outOfTime(ctx); p.calls.Wait() {
		keys := p.takeReturned() // nothing else runs now
		if len(keys) == 0 {
			return
		}
		p.runWorkers(ctx, keys)
	}
}

// runWorkers processes keys concurrently, while there is time. It returns when the workers are done; outside calls may
// still run.
func (p *pass) runWorkers(ctx context.Context, keys []ledger.Key) {
	var taken atomic.Int64
	var group sync.WaitGroup
	for range min(workers, len(keys)) {
		p.Start.Go(&group, func() {
			for !p.outOfTime(ctx) {
				next := int(taken.Add(1)) - 1
				if next >= len(keys) {
					return
				}
				p.process(ctx, keys[next], nil)
			}
		})
	}
	group.Wait()
}
