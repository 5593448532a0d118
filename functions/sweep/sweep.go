// Package sweep processes the due entries each minute. It marks lapsed leases, looks payments up, confirms claims,
// expires payments, delivers notifications and sends the payer's SMS. It is the fallback of all other functions.
//
// Its cost is proportional to the number of due entries. Its invariants: it reads an entry before it acts on it,
// because the index lags. A write claims each lookup, post and SMS before it is made, so that concurrent sweeps make it
// once. The mark of a lapsed lease needs no claim: each write is conditional on the version that was read.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/reconcile"
	"mobilegateway/shared/telemetry"
	"mobilegateway/shared/webhook"
)

const (
	// maxKeysPerShard bounds the due entries of a shard in one sweep, oldest first; the next sweep processes the rest.
	maxKeysPerShard = 1000
	// workers is the number of entries processed concurrently. Workers nearly always wait for other systems.
	workers = 32
	// startMargin is the remaining invocation time below which no step starts: the longest delivery and its write.
	startMargin = 20 * time.Second
	// storeMargin is the part of the invocation's time that is left for the write; storeTimeout bounds the write.
	storeMargin  = 3 * time.Second
	storeTimeout = 2 * time.Second
)

// Sweep processes due entries. It is safe for concurrent use.
type Sweep struct {
	Queue        ledger.DueQueue
	Book         *ledger.Book
	Reconciler   *reconcile.Reconciler
	DailyAmounts *dailyamount.Counter
	Courier      *delivery.Courier
	// StackName is the name of the deployed stack, a dimension of the metrics.
	StackName string
	// PollSchedule has the wait before each lookup of a pending payment; the last wait repeats.
	PollSchedule []time.Duration
	// PaymentLifetime is the age from which a pending payment may expire. UnresponsiveRetry is the interval of its
	// lookups after that, while the operator does not respond.
	PaymentLifetime   time.Duration
	UnresponsiveRetry time.Duration
	// SweepInterval is the time between two sweeps.
	SweepInterval time.Duration
	Now           func() time.Time
	Log           io.Writer
}

// pass is one run of the sweep.
type pass struct {
	*Sweep
	mutex                 sync.Mutex
	attemptsByServer      map[webhook.Server]int       // delivery attempts in progress
	attemptsByMerchant    map[string]*merchantAttempts // by merchant id
	lookupsByOperator     map[string]int               // lookups in progress
	unresponsiveOperators map[string]bool              // true after a lookup without a response
}

// step does one kind of work on an entry, if it is due, and returns the stored entry.
type step func(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error)

// Invoke implements lambda.Handler of aws-lambda-go: it runs one sweep and ignores the event. It returns an error, for
// the alarm, if a shard cannot be read; the other shards are processed.
func (s *Sweep) Invoke(ctx context.Context, _ []byte) ([]byte, error) {
	if deadline, hasDeadline := ctx.Deadline(); hasDeadline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-storeMargin))
		defer cancel()
	}
	p := &pass{
		Sweep: s, attemptsByServer: map[webhook.Server]int{}, attemptsByMerchant: map[string]*merchantAttempts{},
		lookupsByOperator: map[string]int{}, unresponsiveOperators: map[string]bool{},
	}
	due := make(chan ledger.Key)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for key := range due {
				p.processEntry(ctx, key)
			}
		})
	}
	err := p.enqueueDue(ctx, due)
	close(due)
	group.Wait()
	s.Courier.Sender.CloseIdle()
	return []byte(`{}`), err
}

// enqueueDue queries all shards concurrently, once each, and sends the keys of due entries to the workers.
func (p *pass) enqueueDue(ctx context.Context, due chan<- ledger.Key) error {
	errs := make([]error, ledger.DueShards)
	var group sync.WaitGroup
	for shard := range ledger.DueShards {
		group.Go(func() { errs[shard] = p.enqueueShard(ctx, shard, due) })
	}
	group.Wait()
	return errors.Join(errs...)
}

func (p *pass) enqueueShard(ctx context.Context, shard int, due chan<- ledger.Key) error {
	keys, err := p.Queue.DueKeys(ctx, shard, p.Now(), maxKeysPerShard)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if p.outOfTime(ctx) {
			return nil
		}
		due <- key
	}
	return nil
}

// outOfTime reports whether too little of the invocation's time is left to start another step.
func (p *pass) outOfTime(ctx context.Context) bool {
	deadline, hasDeadline := ctx.Deadline()
	return hasDeadline && deadline.Sub(p.Now()) < startMargin-storeMargin
}

// processEntry processes one due entry and writes one log line.
func (p *pass) processEntry(ctx context.Context, key ledger.Key) {
	if p.outOfTime(ctx) {
		return
	}
	started := p.Now()
	line := telemetry.NewLogLine("sweep", started)
	line.SetStackName(p.StackName)
	line.SetTransactionKey(key.ID)
	defer func() {
		// A panic must not stop the other entries.
		if panicValue := recover(); panicValue != nil {
			line.SetCause(fmt.Errorf("panic %T", panicValue))
		}
		line.SetDuration(p.Now().Sub(started))
		_ = line.Write(p.Log)
	}()
	if err := p.runSteps(ctx, key, line); err != nil {
		line.SetCause(err)
	}
}

// runSteps runs the steps in order while there is time. A failed step does not stop the next ones: the payer gets
// the SMS even if the merchant's secrets cannot be read.
func (p *pass) runSteps(ctx context.Context, key ledger.Key, line *telemetry.LogLine) error {
	entry, err := p.Book.Reader.Get(ctx, key)
	if err != nil || entry == nil {
		return err
	}
	if now := ledger.Timestamp(p.Now()); entry.PastRetention(now) {
		_, err := p.applyChange(ctx, entry, func(e *ledger.Entry) bool { return e.ClearTimers(now) })
		return err
	}
	line.SetMerchant(entry.Merchant)
	line.SetOperator(entry.Operator)
	line.SetCountry(entry.Country)
	line.SetChannel(entry.Channel)
	if entry.DueAt.IsZero() || entry.DueAt.After(p.Now()) {
		line.SetOutcome("not-due") // the index lags, or a concurrent sweep was faster
		return nil
	}
	line.SetScheduleDelay(p.Now().Sub(entry.DueAt))
	var errs []error
	for _, step := range []step{p.lapseLease, p.lookUpPayment, p.deliverNotification, p.sendUserSMS} {
		if p.outOfTime(ctx) {
			break
		}
		next, err := step(ctx, entry, line)
		errs = append(errs, err)
		if next != nil {
			entry = next
		}
	}
	line.SetOutcome(string(entry.State))
	return errors.Join(errs...)
}

// lapseLease marks a reservation whose lease has lapsed as unknown, because it may have been sent (decision "leases").
// The lookup of a payment is due at once. Another entry is due for a person's list after StaleAfter.
func (p *pass) lapseLease(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
	now := ledger.Timestamp(p.Now())
	next := now
	if entry.Kind != ledger.Payment {
		next = now.Add(ledger.StaleAfter)
	}
	lapsed := false
	entry, err := p.applyChange(ctx, entry, func(e *ledger.Entry) bool {
		lapsed = e.MarkLapsed(now, next)
		return lapsed
	})
	if err == nil && lapsed && entry.State == ledger.Unknown {
		line.Increment(telemetry.UnknownOutcomes)
	}
	return entry, err
}

// applyChange applies a pure change to an entry and stores it, if change reports that it changed the entry. The write
// has its own time limit, since the step before it may have used up the invocation's.
func (p *pass) applyChange(
	ctx context.Context, entry *ledger.Entry, change func(*ledger.Entry) bool,
) (*ledger.Entry, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return p.Book.ApplyChange(ctx, entry, change)
}
