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

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/settlement"
	"mobilegateway/shared/telemetry"
	"mobilegateway/shared/webhook"
)

const (
	// batch is how many due entries of a shard one sweep takes up, oldest first; the rest is the next sweep's.
	batch = 1000
	// workers is how many entries are worked on side by side. They wait for others nearly all the time.
	workers = 32
	// startReserve is what must be left of the invocation's time before another act on an entry is begun: the longest
	// delivery, and storing what came of it.
	startReserve = 20 * time.Second
	// settleReserve is what every act leaves of the invocation's time for that storing, and storeTimeout bounds it.
	settleReserve = 3 * time.Second
	storeTimeout  = 2 * time.Second
)

// Sweep takes up what is due.
type Sweep struct {
	Queue      ledger.Queue
	Book       *ledger.Book
	Settlement *settlement.Desk
	Courier    *delivery.Courier
	// Stack is the deployed stack's name, for the metrics.
	Stack string
	// PollSchedule is the wait before each lookup of a pending payment; the last one repeats.
	PollSchedule []time.Duration
	// Lifetime is after which a pending payment may expire; RetrySilent how often it is asked then while nobody answers.
	Lifetime    time.Duration
	RetrySilent time.Duration
	// Interval is the time between two sweeps.
	Interval time.Duration
	Now      func() time.Time
	Log      io.Writer
}

// pass is one sweep.
type pass struct {
	*Sweep
	mutex   sync.Mutex
	probing map[webhook.Server]int // attempts under way at servers
	posts   map[string]*posts      // attempts by merchant
	asking  map[string]int         // lookups under way, by operator
	silent  map[string]bool        // operators whose last lookup in this pass was not answered
}

// step is one kind of work on an entry. It claims, acts, stores, and gives back the entry as it stands then.
type step func(ctx context.Context, entry *ledger.Entry, line *telemetry.Event) (*ledger.Entry, error)

// Invoke runs one sweep; the event says nothing. It implements aws-lambda-go's lambda.Handler. A shard that cannot be
// read is an error: the schedule's next run comes in a minute, and the error alarm rings.
func (s *Sweep) Invoke(ctx context.Context, _ []byte) ([]byte, error) {
	if deadline, limited := ctx.Deadline(); limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-settleReserve))
		defer cancel()
	}
	p := &pass{Sweep: s, probing: map[webhook.Server]int{}, posts: map[string]*posts{}, asking: map[string]int{}, silent: map[string]bool{}}
	due := make(chan ledger.Key)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for key := range due {
				p.entry(ctx, key)
			}
		})
	}
	err := p.read(ctx, due)
	close(due)
	group.Wait()
	s.Courier.Sender.CloseIdle()
	return []byte(`{}`), err
}

// read queries every shard once, side by side, and hands out what is due.
func (p *pass) read(ctx context.Context, due chan<- ledger.Key) error {
	faults := make([]error, ledger.DueShards)
	var group sync.WaitGroup
	for shard := range ledger.DueShards {
		group.Go(func() { faults[shard] = p.shard(ctx, shard, due) })
	}
	group.Wait()
	return errors.Join(faults...)
}

func (p *pass) shard(ctx context.Context, shard int, due chan<- ledger.Key) error {
	keys, err := p.Queue.DueKeys(ctx, shard, p.Now(), batch)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if p.late(ctx) {
			return nil
		}
		due <- key
	}
	return nil
}

// late is true when too little of the invocation's time is left to begin another act.
func (p *pass) late(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return limited && deadline.Sub(p.Now()) < startReserve-settleReserve
}

// entry takes up one due entry and writes one line.
func (p *pass) entry(ctx context.Context, key ledger.Key) {
	if p.late(ctx) {
		return
	}
	started := p.Now()
	line := telemetry.New("sweep", started)
	line.SetStack(p.Stack)
	line.SetKey(key.ID)
	defer func() {
		// One broken entry must not stop the others.
		if panicked := recover(); panicked != nil {
			line.SetCause(fmt.Errorf("panic %T", panicked))
		}
		line.SetTotal(p.Now().Sub(started))
		_ = line.Write(p.Log)
	}()
	if err := p.work(ctx, key, line); err != nil {
		line.SetCause(err)
	}
}

// work does whatever is due of an entry, one thing after another, while there is time. A step that fails does not stop
// those after it: a merchant whose secrets cannot be had does not cost the purchaser the SMS.
func (p *pass) work(ctx context.Context, key ledger.Key, line *telemetry.Event) error {
	entry, err := p.Book.Reader.Get(ctx, key)
	if err != nil || entry == nil {
		return err
	}
	if now := ledger.Moment(p.Now()); entry.Expired(now) {
		_, err := p.change(ctx, entry, func(e *ledger.Entry) bool { return e.Retire(now) })
		return err
	}
	line.SetMerchant(entry.Merchant)
	line.SetOperator(entry.Operator)
	line.SetCountry(entry.Country)
	line.SetChannel(entry.Channel)
	if entry.Due.IsZero() || entry.Due.After(p.Now()) {
		line.SetOutcome("not-due") // the index lags, or another sweep was faster
		return nil
	}
	line.SetOverdue(p.Now().Sub(entry.Due))
	var faults []error
	for _, step := range []step{p.lapse, p.settle, p.deliver, p.userSMS} {
		if p.late(ctx) {
			break
		}
		next, err := step(ctx, entry, line)
		faults = append(faults, err)
		if next != nil {
			entry = next
		}
	}
	line.SetOutcome(string(entry.State))
	return errors.Join(faults...)
}

// lapse marks a reservation whose owner died: it may have been sent, so it is unknown (decision "leases"). A payment is
// looked up at once; another entry is listed for a person like any that has been unknown for a while.
func (p *pass) lapse(ctx context.Context, entry *ledger.Entry, line *telemetry.Event) (*ledger.Entry, error) {
	now := ledger.Moment(p.Now())
	next := now
	if entry.Kind != ledger.Payment {
		next = now.Add(ledger.StaleAfter)
	}
	lapsed := false
	entry, err := p.change(ctx, entry, func(e *ledger.Entry) bool {
		lapsed = e.Lapse(now, next)
		return lapsed
	})
	if err == nil && lapsed && entry.State == ledger.Unknown {
		line.Count(telemetry.Unknowns)
	}
	return entry, err
}

// change applies a pure change to an entry, and stores it if the change says that there was something to change. An
// attempt may have used up its time: storing what came of it has its own.
func (p *pass) change(ctx context.Context, entry *ledger.Entry, change func(*ledger.Entry) bool) (*ledger.Entry, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return p.Book.Apply(ctx, entry, func(e *ledger.Entry) error {
		if !change(e) {
			return ledger.ErrUnchanged
		}
		return nil
	})
}
