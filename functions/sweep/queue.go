package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/telemetry"
)

// act is one kind of work on an entry. All acts follow one rule: claim by a write that moves the act's timer, act,
// record. An act that cannot be done now is postponed by one write, so that no entry stays at the head of the queue.
type act interface {
	// due reports whether the act is due.
	due(e *ledger.Entry, now time.Time) bool
	// prepare reads what the act needs. do makes the act and returns the entry as stored. After an error, and without a
	// place, nothing was claimed.
	prepare(ctx context.Context, e *ledger.Entry) (needed need, do doFunc, err error)
	// possibleSince is when the act could first have been done.
	possibleSince(e *ledger.Entry) time.Time
	// postpone moves a due act to next, and returns whether the act was due.
	postpone(e *ledger.Entry, now, next time.Time) bool
}

// doFunc claims and makes an act, records its outcome, and returns the entry as stored.
type doFunc func(ctx context.Context, e *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error)

// acts are all kinds of work, in the order in which an entry gets them. The notification precedes the payer's SMS.
func (p *pass) acts() []act {
	return []act{lapseAct{p}, listAct{p}, lookupAct{p}, bindAct{p}, parkedAct{p}, deliveryAct{p}, userSMSAct{p}}
}

// work is the work on one due entry in a pass. It belongs to one goroutine at a time.
type work struct {
	*pass
	key   ledger.Key
	entry *ledger.Entry
	line  *telemetry.LogLine
	errs  []error
	// reserved is a place that the key has got from a waiting line, until an act uses it.
	reserved *place
	// inCall is true in a goroutine that may make outside calls.
	inCall bool
	// acted is true once an act was done or postponed. suspended is true after the work continued elsewhere or waits.
	acted, suspended bool
}

// process does all that is due on an entry, and writes one log line. reserved is nil for a worker.
func (p *pass) process(ctx context.Context, key ledger.Key, reserved *place) {
	w := &work{pass: p, key: key, reserved: reserved, inCall: reserved != nil}
	w.line = telemetry.NewLogLine("sweep", p.Now())
	w.line.SetStackName(p.StackName)
	w.line.SetTransactionKey(key.ID)
	w.guard(func() {
		if !p.outOfTime(ctx) && w.read(ctx) {
			w.run(ctx, p.acts())
		}
	}, ctx)
}

// guard runs a part of the work and ends it: with a log line, or without one if the work continues elsewhere. A panic
// must not stop the other entries.
func (w *work) guard(part func(), ctx context.Context) {
	defer func() {
		if panicValue := recover(); panicValue != nil {
			w.errs = append(w.errs, fmt.Errorf("panic %T", panicValue))
		}
		if w.reserved != nil {
			w.free(ctx, w.reserved, noCall)
			w.reserved = nil
		}
		if w.suspended || w.entry == nil && len(w.errs) == 0 {
			return
		}
		if len(w.errs) > 0 { // otherwise the cause is that of the act, such as a failed lookup
			w.line.SetCause(errors.Join(w.errs...))
		}
		w.line.Finish(w.Now(), w.Log)
	}()
	part()
}

// read reads the entry. It is false if nothing is due.
func (w *work) read(ctx context.Context) bool {
	entry, err := w.Book.Reader.Get(ctx, w.key)
	if errors.Is(err, ledger.ErrUndecodable) {
		w.line.Increment(telemetry.UndecodableEntries)
		err = errors.Join(err, w.moveAway(ctx))
	}
	if err != nil || entry == nil {
		w.errs = append(w.errs, err)
		return false
	}
	w.entry = entry
	if now := ledger.Timestamp(w.Now()); entry.PastRetention(now) {
		_, err := w.applyChange(ctx, entry, func(e *ledger.Entry) bool { return e.ClearTimers(now) })
		w.errs = append(w.errs, err)
		return false
	}
	w.line.SetMerchant(entry.Merchant)
	w.line.SetOperator(entry.Operator)
	w.line.SetCountry(entry.Country)
	w.line.SetChannel(entry.Channel)
	if entry.DueAt.IsZero() || entry.DueAt.After(w.Now()) {
		w.line.SetOutcome("not-due") // the index lags, or a concurrent sweep was faster
		return false
	}
	w.line.SetScheduleDelay(w.Now().Sub(entry.DueAt))
	return true
}

// run does the due acts in order while there is time. A failed act does not stop the next ones: the payer gets the SMS
// even if the merchant's secrets cannot be read.
func (w *work) run(ctx context.Context, acts []act) {
	for i, next := range acts {
		now := ledger.Timestamp(w.Now())
		if w.outOfTime(ctx) {
			break
		}
		if !next.due(w.entry, now) {
			continue
		}
		needed, do, err := next.prepare(ctx, w.entry)
		if err != nil {
			w.errs = append(w.errs, err)
			w.postpone(ctx, next, now)
			continue
		}
		acquired, result := w.acquire(needed)
		switch {
		case result == queued:
			w.suspended = !w.acted
			return
		case result == refused:
			w.postpone(ctx, next, now)
		case len(needed.dependencies) == 0:
			w.do(ctx, do)
		case w.inCall:
			w.call(ctx, acquired, do)
		default:
			w.callElsewhere(ctx, acquired, do, acts[i+1:])
			return
		}
	}
	w.line.SetOutcome(string(w.entry.State))
	w.leaveQueue(ctx)
}

// acquire requests the place of an act, if it needs one.
func (w *work) acquire(needed need) (*place, placement) {
	if len(needed.dependencies) == 0 {
		return nil, granted
	}
	if own := w.reserved; own.matches(needed) {
		w.reserved = nil
		return own, granted
	}
	return w.capacity.acquire(w.key, needed)
}

// do makes an act.
func (w *work) do(ctx context.Context, do doFunc) {
	w.acted = true
	stored, err := do(ctx, w.entry, w.line)
	if err != nil {
		w.errs = append(w.errs, err)
	}
	if stored != nil {
		w.entry = stored
	}
}

// call makes an act with an outside call, and frees its place.
func (w *work) call(ctx context.Context, used *place, do doFunc) {
	started := w.Now()
	defer func() { w.free(ctx, used, w.Now().Sub(started)) }()
	w.do(ctx, do)
}

// callElsewhere makes an act and the acts behind it in a goroutine of its own: a worker never waits for another system.
func (w *work) callElsewhere(ctx context.Context, used *place, do doFunc, behind []act) {
	moved := *w
	moved.inCall = true
	w.suspended = true
	w.Start.Go(&w.calls, func() {
		moved.guard(func() {
			moved.call(ctx, used, do)
			moved.run(ctx, behind)
		}, ctx)
	})
}

// free frees a place, starts the work on the keys that get places now, and hands those that must be postponed to the
// workers.
func (w *work) free(ctx context.Context, used *place, elapsed time.Duration) {
	next, postponed := w.capacity.release(used, elapsed)
	for _, waiting := range next {
		w.Start.Go(&w.calls, func() { w.process(ctx, waiting.key, waiting.place) })
	}
	w.returnKeys(postponed)
}

// postpone moves an act that cannot be done now, and measures how long it could have been done.
func (w *work) postpone(ctx context.Context, postponed act, now time.Time) {
	w.acted = true
	since := postponed.possibleSince(w.entry)
	if _, isLookup := postponed.(lookupAct); !isLookup { // an operator without responses has an alarm of its own
		w.line.SetStalledAge(now.Sub(since))
	}
	next := now.Add(ledger.Postponement(since, now))
	stored, err := w.applyChange(ctx, w.entry, func(e *ledger.Entry) bool { return postponed.postpone(e, now, next) })
	if err != nil {
		w.errs = append(w.errs, err)
		return
	}
	w.entry = stored
}

// leaveQueue moves an entry that is due although no act is. Its due time is older than its timers, or belongs to a
// timer that this version does not know.
func (w *work) leaveQueue(ctx context.Context) {
	now := ledger.Timestamp(w.Now())
	if w.acted || w.outOfTime(ctx) || w.entry.DueAt.IsZero() || w.entry.DueAt.After(now) {
		return
	}
	stored, err := w.applyChange(ctx, w.entry, func(e *ledger.Entry) bool { e.Reschedule(); return true })
	if err == nil && !stored.DueAt.IsZero() && !stored.DueAt.After(now) {
		err = w.moveAway(ctx)
	}
	if err != nil {
		w.errs = append(w.errs, err)
	}
}

// moveAway moves an item that cannot be processed out of the way of the others.
func (w *work) moveAway(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	now := ledger.Timestamp(w.Now())
	return w.Queue.MoveDue(ctx, w.key, now, now.Add(undecodableWait))
}
