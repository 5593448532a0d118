package sweep

import (
	"context"
	"sync"
	"sync/atomic"

	"mobilegateway/shared/ledger"
)

// workers is the number of entries that are read and changed concurrently. Workers make no outside calls.
const workers = 32

// Invoke implements lambda.Handler of aws-lambda-go: it runs one sweep and ignores the event. It returns an error, for
// the alarm, if a shard cannot be read; the other shards are processed.
func (s *Sweep) Invoke(ctx context.Context, _ []byte) ([]byte, error) {
	if deadline, hasDeadline := ctx.Deadline(); hasDeadline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-storeMargin))
		defer cancel()
	}
	p := &pass{Sweep: s, startedAt: s.Now()}
	p.jobs = p.newJobs()
	readers := newShardReaders(p.startedAt)
	for more := true; more && !p.outOfTime(ctx); {
		var keys []ledger.Key
		keys, more = p.readPages(ctx, readers)
		p.runWorkers(ctx, append(keys, p.takeReturned()...))
		if !more {
			p.calls.Wait()
			more = len(p.returned) > 0 // nothing else runs now
		}
	}
	p.calls.Wait()
	s.Courier.Sender.CloseIdle()
	return []byte(`{}`), readErrors(readers)
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
