// Package sweep is the safety net: each minute it takes up whatever is due. Reservations whose owner died, payments to
// look up, claims to confirm, payments to expire, notifications to deliver, the purchaser's SMS.
//
// Its work is proportional to what is due. Its invariants: an entry is read before it is acted upon, for the index lags;
// every act is claimed by a write first, so that two sweeps at once do no harm.
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
	// maxKeysPerShard is how many due entries of a shard one sweep takes up, oldest first; the rest is the next sweep's.
	maxKeysPerShard = 1000
	// workers is how many entries are worked on side by side. They wait for others nearly all the time.
	workers = 32
	// startMargin is what must be left of the invocation's time before another act on an entry is begun: the longest
	// delivery, and storing what came of it.
	startMargin = 20 * time.Second
	// storeMargin is what every act leaves of the invocation's time for that storing, and storeTimeout bounds it.
	storeMargin  = 3 * time.Second
	storeTimeout = 2 * time.Second
)

// Sweep takes up what is due.
type Sweep struct {
	Queue        ledger.DueQueue
	Book         *ledger.Book
	Reconciler   *reconcile.Reconciler
	DailyAmounts *dailyamount.Counter
	Courier      *delivery.Courier
	// StackName is the deployed stack's name, for the metrics.
	StackName string
	// PollSchedule is the wait before each lookup of a pending payment; the last one repeats.
	PollSchedule []time.Duration
	// PaymentLifetime is after which a pending payment may expire; UnresponsiveRetry how often it is asked then while nobody answers.
	PaymentLifetime   time.Duration
	UnresponsiveRetry time.Duration
	// SweepInterval is the time between two sweeps.
	SweepInterval time.Duration
	Now           func() time.Time
	Log           io.Writer
}

// pass is one sweep.
type pass struct {
	*Sweep
	mutex                 sync.Mutex
	attemptsByServer      map[webhook.Server]int       // attempts under way at servers
	attemptsByMerchant    map[string]*merchantAttempts // attempts by merchant
	lookupsByOperator     map[string]int               // lookups under way, by operator
	unresponsiveOperators map[string]bool              // operators whose last lookup in this pass was not answered
}

// step is one kind of work on an entry. It claims, acts, stores, and gives back the entry as it stands then.
type step func(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error)

// Invoke runs one sweep; the event says nothing. It implements aws-lambda-go's lambda.Handler. A shard that cannot be
// read is an error: the schedule's next run comes in a minute, and the error alarm rings.
func (s *Sweep) Invoke(ctx context.Context, _ []byte) ([]byte, error) {
	if deadline, hasDeadline := ctx.Deadline(); hasDeadline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-storeMargin))
		defer cancel()
	}
	p := &pass{Sweep: s, attemptsByServer: map[webhook.Server]int{}, attemptsByMerchant: map[string]*merchantAttempts{}, lookupsByOperator: map[string]int{}, unresponsiveOperators: map[string]bool{}}
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

// enqueueDue queries every shard once, side by side, and hands out what is due.
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

// outOfTime is true when too little of the invocation's time is left to begin another act.
func (p *pass) outOfTime(ctx context.Context) bool {
	deadline, hasDeadline := ctx.Deadline()
	return hasDeadline && deadline.Sub(p.Now()) < startMargin-storeMargin
}

// processEntry takes up one due entry and writes one line.
func (p *pass) processEntry(ctx context.Context, key ledger.Key) {
	if p.outOfTime(ctx) {
		return
	}
	started := p.Now()
	line := telemetry.NewLogLine("sweep", started)
	line.SetStackName(p.StackName)
	line.SetTransactionKey(key.ID)
	defer func() {
		// One broken entry must not stop the others.
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

// runSteps does whatever is due of an entry, one thing after another, while there is time. A step that fails does not stop
// those after it: a merchant whose secrets cannot be had does not cost the purchaser the SMS.
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
		line.SetOutcome("not-due") // the index lags, or another sweep was faster
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

// lapseLease marks a reservation whose owner died: it may have been sent, so it is unknown (decision "leases"). A payment is
// looked up at once; another entry is listed for a person like any that has been unknown for a while.
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

// applyChange applies a pure change to an entry, and stores it if the change says that there was something to change. An
// attempt may have used up its time: storing what came of it has its own.
func (p *pass) applyChange(ctx context.Context, entry *ledger.Entry, change func(*ledger.Entry) bool) (*ledger.Entry, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return p.Book.ChangeKnown(ctx, entry, func(e *ledger.Entry) error {
		if !change(e) {
			return ledger.ErrUnchanged
		}
		return nil
	})
}
