package sweep

import (
	"context"
	"errors"
	"time"

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/telemetry"
)

// newJobs returns all kinds of work, in the order in which an entry gets them. The notification precedes the payer's
// SMS.
func (p *pass) newJobs() []job {
	return []job{
		{due: (*ledger.Entry).LapseDue, prepare: needsNothing(p.lapse)},
		{due: listDue, prepare: needsNothing(p.list)},
		{
			due: paymentLookupDue, prepare: p.prepareLookup, postpone: (*ledger.Entry).PostponeLookup,
			since:       func(e *ledger.Entry) time.Time { return e.ReservedAt },
			hasOwnAlarm: true, // that of an operator without responses
		},
		{due: (*ledger.Entry).BindDue, prepare: needsNothing(p.bind)},
		{
			due:     func(e *ledger.Entry, now time.Time) bool { return e.Outbox.ParkedCheckDue(now) },
			prepare: p.prepareParkedCheck, since: notifiedSince,
			postpone: func(e *ledger.Entry, now, _ time.Time) bool { return e.Outbox.PostponeParkedCheck(now) },
		},
		{
			due:     func(e *ledger.Entry, now time.Time) bool { return e.Outbox.DeliveryDue(now) },
			prepare: p.prepareDelivery, since: notifiedSince,
			postpone: func(e *ledger.Entry, now, next time.Time) bool { return e.Outbox.PostponeDelivery(now, next) },
		},
		{
			due:      func(e *ledger.Entry, now time.Time) bool { return e.UserSMS.Due(now) },
			prepare:  p.prepareUserSMS,
			since:    func(e *ledger.Entry) time.Time { return e.FinalAt },
			postpone: func(e *ledger.Entry, now, next time.Time) bool { return e.UserSMS.Postpone(now, next) },
		},
	}
}

// work is the work on one due entry in a pass. It belongs to one goroutine at a time.
type work struct {
	*pass
	key   ledger.Key
	entry *ledger.Entry
	line  *telemetry.LogLine
	errs  []error
	// reserved is a slot that the key has got from a waiting line, until a job uses it.
	reserved slot
	// inCall is true in a goroutine that may make outside calls.
	inCall bool
	// progressed is true once a job was done or postponed, suspended after the work continued elsewhere or waits.
	progressed, suspended bool
}

// process does all that is due on an entry, and writes one log line. reserved is nil for a worker.
func (p *pass) process(ctx context.Context, key ledger.Key, reserved slot) {
	w := &work{pass: p, key: key, reserved: reserved, inCall: reserved != nil}
	w.line = telemetry.NewLogLine("sweep", p.Now())
	w.line.SetStackName(p.StackName)
	w.line.SetTransactionKey(key.ID)
	w.guard(ctx, func() {
		if !p.outOfTime(ctx) && w.read(ctx) {
			w.run(ctx, p.jobs)
		}
	})
}

// guard runs a part of the work and ends it: with a log line, or without one if the work continues elsewhere. A panic
// must not stop the other entries.
func (w *work) guard(ctx context.Context, part func()) {
	defer func() {
		if panicValue := recover(); panicValue != nil {
			w.errs = append(w.errs, logsafe.Errorf("panic %s", logsafe.TypeOf(panicValue)))
		}
		if w.reserved != nil {
			w.free(ctx, w.reserved, noCall)
			w.reserved = nil
		}
		if w.suspended || w.entry == nil && len(w.errs) == 0 {
			return
		}
		if len(w.errs) > 0 { // otherwise the cause is that of the job, such as a failed lookup
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
		w.keep(w.applyChange(ctx, entry, func(e *ledger.Entry) ledger.Transition {
			return ledger.EndRetention.If(e.ClearTimers(now))
		}))
		return false
	}
	w.line.SetMerchant(entry.Merchant.Name)
	w.line.SetRouting(entry.Route.Operator, entry.Route.Country, entry.Request.Channel)
	if entry.DueAt.IsZero() || entry.DueAt.After(w.Now()) {
		w.line.SetOutcome("not-due") // the index lags, or a concurrent sweep was faster
		return false
	}
	w.line.SetScheduleDelay(w.Now().Sub(entry.DueAt))
	return true
}

// keep takes over an entry as it was stored, and keeps the error of the log line.
func (w *work) keep(stored *ledger.Entry, err error) {
	if err != nil {
		w.errs = append(w.errs, err)
	}
	if stored != nil {
		w.entry = stored
	}
}

// run does the due jobs in order while there is time. A failed job does not stop the next ones: the payer gets the SMS
// even if the merchant's secrets cannot be read.
func (w *work) run(ctx context.Context, jobs []job) {
	for i, next := range jobs {
		now := ledger.Timestamp(w.Now())
		if w.outOfTime(ctx) {
			break
		}
		if !next.due(w.entry, now) {
			continue
		}
		prepared, err := next.prepare(ctx, w.entry)
		if err != nil {
			w.errs = append(w.errs, err)
			w.postpone(ctx, next, now)
			continue
		}
		acquired, result := w.acquire(prepared.requires)
		switch {
		case result == queued:
			w.suspended = !w.progressed
			w.startBatches(ctx, prepared.requires)
			return
		case result == refused:
			w.postpone(ctx, next, now)
		case result == late:
			w.line.Increment(telemetry.RateLimitedLookups)
			w.postponeTo(ctx, next, now, now.Add(w.slots.shareWait(prepared.requires)))
		case acquired == nil, w.inCall:
			w.do(ctx, acquired, prepared.do)
		default:
			w.callElsewhere(ctx, acquired, prepared.do, jobs[i+1:])
			return
		}
	}
	w.line.SetOutcome(string(w.entry.State))
	w.leaveQueue(ctx)
}

// acquire requests the slot of a job, if it requires one.
func (w *work) acquire(required requirement) (slot, grant) {
	if len(required.dependencies) == 0 {
		return nil, granted
	}
	if own := w.reserved; own.matches(required) {
		w.reserved = nil
		return own, granted
	}
	return w.slots.acquire(w.key, required)
}

// do does a job, and frees the slot of its outside call; nil for a job without one.
func (w *work) do(ctx context.Context, used slot, do doFunc) {
	if used != nil {
		started := w.Now()
		defer func() { w.free(ctx, used, w.Now().Sub(started)) }()
	}
	w.progressed = true
	w.keep(do(ctx, w.entry, w.line))
}

// callElsewhere does a job and the jobs behind it in a goroutine of its own: a worker never waits for another system.
func (w *work) callElsewhere(ctx context.Context, used slot, do doFunc, behind []job) {
	moved := *w
	moved.inCall = true
	w.suspended = true
	w.Start.Go(&w.calls, func() {
		moved.guard(ctx, func() {
			moved.do(ctx, used, do)
			moved.run(ctx, behind)
		})
	})
}

// free frees a slot, starts the work on the keys that get slots now, and hands those that must be postponed to the
// workers.
func (w *work) free(ctx context.Context, used slot, elapsed time.Duration) {
	next, postponed := w.slots.release(used, elapsed)
	w.startAssigned(ctx, next, postponed)
}

// postpone moves a job that cannot be done now, and measures how long it could have been done.
func (w *work) postpone(ctx context.Context, postponed job, now time.Time) {
	since := postponed.since(w.entry)
	if !postponed.hasOwnAlarm {
		w.line.SetStalledAge(now.Sub(since))
	}
	w.postponeTo(ctx, postponed, now, now.Add(ledger.Postponement(since, now)))
}

// postponeTo moves a job that is due now to next.
func (w *work) postponeTo(ctx context.Context, postponed job, now, next time.Time) {
	w.progressed = true
	w.keep(w.applyChange(ctx, w.entry, func(e *ledger.Entry) ledger.Transition {
		return ledger.Postpone.If(postponed.postpone(e, now, next))
	}))
}

// leaveQueue moves an entry that is due although no job is. Its due time is older than its timers, or belongs to a
// timer that this version does not know.
func (w *work) leaveQueue(ctx context.Context) {
	now := ledger.Timestamp(w.Now())
	if w.progressed || w.outOfTime(ctx) || w.entry.DueAt.IsZero() || w.entry.DueAt.After(now) {
		return
	}
	stored, err := w.applyChange(ctx, w.entry, func(*ledger.Entry) ledger.Transition { return ledger.Reschedule })
	if err == nil && !stored.DueAt.IsZero() && !stored.DueAt.After(now) {
		err = w.moveAway(ctx)
	}
	w.keep(stored, err)
}

// undecodableWait is how long an item that cannot be processed leaves the queue.
const undecodableWait = time.Hour

// moveAway moves an item that cannot be processed out of the way of the others.
func (w *work) moveAway(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), delivery.StoreTimeout)
	defer cancel()
	now := ledger.Timestamp(w.Now())
	return w.Queue.MoveDue(ctx, w.key, now, now.Add(undecodableWait))
}
