package sweep

import (
	"context"
	"sync"

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
			more = p.hasReturned()
		}
	}
	p.calls.Wait()
	s.Courier.Sender.CloseIdle()
	return []byte(`{}`), readErrors(readers)
}

// runWorkers processes keys concurrently. It returns when the workers are done; outside calls may still run.
func (p *pass) runWorkers(ctx context.Context, keys []ledger.Key) {
	p.ready = keys
	var group sync.WaitGroup
	for range min(workers, len(keys)) {
		p.Start.Go(&group, func() {
			for key, found := p.nextKey(ctx); found; key, found = p.nextKey(ctx) {
				p.process(ctx, key, nil)
			}
		})
	}
	group.Wait()
}

// nextKey takes the next key of the round, while there is time.
func (p *pass) nextKey(ctx context.Context) (key ledger.Key, found bool) {
	if p.outOfTime(ctx) {
		return key, false
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(p.ready) == 0 {
		return key, false
	}
	key, p.ready = p.ready[0], p.ready[1:]
	return key, true
}
