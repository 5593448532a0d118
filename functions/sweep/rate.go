package sweep

import (
	"context"
	"slices"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/telemetry"
)

const (
	// shareParts of shareOf are the part of an account's rate of lookups that the sweeps of a minute take while some
	// wait for it. Callbacks and commands have the rest.
	shareParts, shareOf = 4, 5
	// maxShareWait bounds how long a lookup without a share is postponed.
	maxShareWait = time.Hour
)

// lookupRate is the rate of an account's lookups in a pass; the zero value for a platform without a rate.
type lookupRate struct {
	account operator.Pin
	// batch is the number of lookups that one write takes, and interval the time that the sweep's share needs for one.
	batch    int
	interval time.Duration
	// capacity is how many lookups the share has in what is left of the pass. Further ones do not wait in line.
	capacity int
}

// newLookupRate returns this sweep's share of the rate in a platform's row. The sweeps of a minute divide that of all.
func (p *pass) newLookupRate(ctx context.Context, account operator.Pin, row operator.Capabilities) lookupRate {
	sweeps := max(1, p.slots.sweeps)
	interval := time.Duration(sweeps) * time.Second * shareOf / time.Duration(shareParts*row.LookupsPerSecond)
	capacity := maxWaiting
	if deadline, hasDeadline := ctx.Deadline(); hasDeadline {
		remaining := deadline.Sub(p.Now()) - (startMargin - storeMargin)
		capacity = min(max(1, int(remaining/interval)), maxWaiting)
	}
	batch := row.LookupBurst() * shareParts / (shareOf * sweeps)
	return lookupRate{account, max(1, batch), interval, capacity}
}

// startBatches starts takeBatches for a rate, unless it runs.
func (p *pass) startBatches(ctx context.Context, r requirement) {
	if r.rate.batch > 0 && p.slots.beginBatches(r) {
		p.Start.Go(&p.calls, func() { p.takeBatches(ctx, r) })
	}
}

// takeBatches takes lookups out of an account's rate, a batch by each write, and assigns them to the waiting keys. It
// ends when none waits. At the end of the pass the keys that still wait stay due for the next one.
func (p *pass) takeBatches(ctx context.Context, r requirement) {
	for !p.outOfTime(ctx) {
		missing, isWaiting := p.slots.missingLookups(r)
		if !isWaiting {
			return
		}
		wait := r.rate.interval
		if missing > 0 { // otherwise they wait for a slot of the platform
			granted, untilNext, err := p.Confirmer.TakeLookups(ctx, r.rate.account, min(missing, r.rate.batch))
			if err != nil { // no limit: all lookups that wait, and those that come meanwhile after an interval
				granted = missing
				p.logRateFailure(err)
			} else {
				wait = max(untilNext, time.Duration(granted)*r.rate.interval)
			}
			next, postponed := p.slots.addLookups(r, granted)
			p.startAssigned(ctx, next, postponed)
		}
		if p.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// logRateFailure writes a log line of a table of limits that did not respond.
func (p *pass) logRateFailure(err error) {
	line := telemetry.NewLogLine("sweep", p.Now())
	line.SetStackName(p.StackName)
	line.Increment(telemetry.LimitStoreFailures)
	line.SetCause(err)
	line.Finish(p.Now(), p.Log)
}

// startAssigned starts the work on the keys that have got slots, and hands those that must be postponed to the workers.
func (p *pass) startAssigned(ctx context.Context, next []assignment, postponed []ledger.Key) {
	for _, waiting := range next {
		p.Start.Go(&p.calls, func() { p.process(ctx, waiting.key, waiting.slot) })
	}
	p.returnKeys(postponed)
}

// lineOf returns the position of the line for a requirement's first dependency, -1 for none.
func (t *slotTable) lineOf(r requirement) int {
	return slices.IndexFunc(t.lines, func(l *waitingLine) bool { return l.dependencies[0] == r.dependencies[0] })
}

// beginBatches reports whether no batches of a rate are being taken yet, and notes that they are now.
func (t *slotTable) beginBatches(r requirement) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	used := t.usage(r.dependencies[0])
	begins := !used.takesBatches
	used.takesBatches = true
	return begins
}

// missingLookups returns how many keys wait for lookups, 0 while some that were taken are not used: they are not saved
// up. isWaiting is false if no key waits: no batches are taken then.
func (t *slotTable) missingLookups(r requirement) (missing int, isWaiting bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	used, at := t.usage(r.dependencies[0]), t.lineOf(r)
	switch {
	case at < 0:
		used.takesBatches = false
		return 0, false
	case used.lookups > 0:
		return 0, true
	}
	return len(t.lines[at].keys), true
}

// addLookups adds lookups that were taken out of a rate. Its results are those of release.
func (t *slotTable) addLookups(r requirement, count int) (next []assignment, postponed []ledger.Key) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.usage(r.dependencies[0]).lookups += count
	return t.assignSlots()
}

// shareWait returns when the share of a key comes that does not wait in the line of its rate.
func (t *slotTable) shareWait(r requirement) time.Duration {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	used := t.usage(r.dependencies[0])
	used.behind++
	return min(time.Duration(r.rate.capacity+used.behind)*r.rate.interval, maxShareWait)
}
