package sweep

import (
	"context"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/reconcile"
	"mobilegateway/shared/telemetry"
)

// lookUpPayment looks a payment up at its operator and makes of the answer what the decisions say: a final status is applied;
// at the end of its lifetime an answered lookup that is not successful expires it; else it is asked again later
// (decisions "pay-poll" and "pay-claims"). The next lookup is stored first, which claims this one.
func (p *pass) lookUpPayment(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
	now := ledger.Timestamp(p.Now())
	if !entry.LookupDue(now) {
		return entry, nil
	}
	if !p.acquireLookupSlot(entry.Operator) {
		return entry, nil // still due: the next sweep's
	}
	defer p.releaseLookupSlot(entry.Operator)
	claimed := false
	entry, err := p.applyChange(ctx, entry, func(e *ledger.Entry) bool {
		claimed = e.LookupDue(now)
		if claimed {
			e.ReschedulePoll(p.nextPollAt(e, now))
		}
		return claimed
	})
	if err != nil || !claimed {
		return entry, err
	}
	if entry.Kind != ledger.Payment {
		// It cannot be looked up: it waits for the merchant's retry or a person (decision "repeat-window").
		line.Increment(telemetry.StaleUnknownOutcomes)
		return entry, nil
	}
	start := p.Now()
	lookup := p.Reconciler.LookUp(ctx, entry)
	line.AddOperatorTime(p.Now().Sub(start))
	p.setResponsive(entry.Operator, lookup.Responded)
	if lookup.Supported && !lookup.Responded {
		line.Increment(telemetry.LookupFailures)
		line.SetCause(lookup.Cause)
	}
	if lookup.Responded {
		entry, err = p.applyLookup(ctx, entry, lookup, line)
	}
	if err == nil && p.needsManualResolution(entry, lookup, now) {
		line.Increment(telemetry.StaleUnknownOutcomes)
	}
	return entry, err
}

// maxUnresponsiveLookups is how many lookups run side by side at an operator that has just not answered one: so one operator that is
// down holds up no other's payments, and no notifications.
const maxUnresponsiveLookups = workers / 4

// acquireLookupSlot takes a place for a lookup at an operator; false where it is silent and its few places are taken.
func (p *pass) acquireLookupSlot(operator string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.unresponsiveOperators[operator] && p.lookupsByOperator[operator] >= maxUnresponsiveLookups {
		return false
	}
	p.lookupsByOperator[operator]++
	return true
}

// releaseLookupSlot gives the place back.
func (p *pass) releaseLookupSlot(operator string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.lookupsByOperator[operator]--
}

// setResponsive notes whether an operator answered.
func (p *pass) setResponsive(operator string, responded bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.unresponsiveOperators[operator] = !responded
}

// applyLookup stores what an answered lookup means.
func (p *pass) applyLookup(ctx context.Context, entry *ledger.Entry, lookup reconcile.LookupResult, line *telemetry.LogLine) (*ledger.Entry, error) {
	conflicts := 0
	store := func(change func(*ledger.Entry) bool) (*ledger.Entry, error) { return p.applyChange(ctx, entry, change) }
	updated, refundErr, err := p.DailyAmounts.StoreChange(ctx, store, func(e *ledger.Entry) bool {
		now, conflictsBefore := ledger.Timestamp(p.Now()), len(e.Conflicts)
		var resolved ledger.Effect
		if lookup.StatusFinal {
			resolved = e.ApplyFinalStatus(p.Reconciler.NewStatusReport(e, lookup.Report, reconcile.SourceStatus), now)
		} else {
			resolved = e.Expire(p.PaymentLifetime, now)
		}
		conflicts = len(e.Conflicts) - conflictsBefore
		return resolved != ledger.Unchanged
	})
	if err == nil {
		line.Add(telemetry.StatusConflicts, conflicts)
	}
	if refundErr != nil {
		line.Increment(telemetry.LimitStoreFailures)
		line.SetCause(refundErr)
	}
	return updated, err
}

// needsManualResolution tells whether a payment that this lookup did not settle needs a person: one past its lifetime, which nobody
// answers for, which has a success claimed that getStatus does not confirm, or whose amount is another; and one that has
// been unknown for a while and cannot be looked up.
func (p *pass) needsManualResolution(e *ledger.Entry, lookup reconcile.LookupResult, now time.Time) bool {
	age := now.Sub(e.ReservedAt)
	switch {
	case e.StatusFinal() || e.PollAt.IsZero() && e.Claim.Status == "":
		return false
	case age >= p.PaymentLifetime:
		return true
	default:
		return !lookup.Responded && e.State == ledger.Unknown && age >= ledger.StaleAfter
	}
}

// nextPollAt is when an entry is asked about again if this time settles nothing: a payment by the schedule, but never past
// the end of its lifetime, at which an answer may expire it, and after that hourly; what cannot be looked up is listed
// again after the schedule's last wait.
func (p *pass) nextPollAt(e *ledger.Entry, now time.Time) time.Time {
	last := len(p.PollSchedule) - 1
	release := e.ReservedAt.Add(p.PaymentLifetime)
	switch {
	case e.Kind != ledger.Payment && now.Sub(e.ReservedAt) > p.PaymentLifetime:
		return now.Add(p.PaymentLifetime) // a person has been told often enough
	case e.Kind != ledger.Payment:
		return now.Add(p.PollSchedule[last])
	case !now.Before(release):
		return now.Add(p.UnresponsiveRetry)
	}
	next := now.Add(p.PollSchedule[min(e.PollAttempts+1, last)])
	if next.After(release) {
		return release
	}
	return next
}
