package sweep

import (
	"context"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/reconcile"
	"mobilegateway/shared/telemetry"
)

// lookUpPayment looks a payment up at its operator and applies the response (decisions "pay-poll" and "pay-claims"). A
// final status is stored. After the end of the payment's lifetime, another response expires it. Otherwise it is polled
// again later. The write of the next poll time claims this lookup.
func (p *pass) lookUpPayment(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
	now := ledger.Timestamp(p.Now())
	if !entry.LookupDue(now) {
		return entry, nil
	}
	if !p.acquireLookupSlot(entry.Operator) {
		return entry, nil // still due for the next sweep
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
		// There is no lookup for it: it waits for the merchant's retry or a person (decision "repeat-window").
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

// maxUnresponsiveLookups bounds the concurrent lookups at an operator whose last lookup had no response. So an operator
// that is down delays neither the payments of other operators nor notifications.
const maxUnresponsiveLookups = workers / 4

// acquireLookupSlot reserves a slot for a lookup. It is false if the operator is unresponsive and its few slots are in
// use.
func (p *pass) acquireLookupSlot(operator string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.unresponsiveOperators[operator] && p.lookupsByOperator[operator] >= maxUnresponsiveLookups {
		return false
	}
	p.lookupsByOperator[operator]++
	return true
}

// releaseLookupSlot frees a slot.
func (p *pass) releaseLookupSlot(operator string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.lookupsByOperator[operator]--
}

// setResponsive records whether an operator responded.
func (p *pass) setResponsive(operator string, responded bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.unresponsiveOperators[operator] = !responded
}

// applyLookup applies the response to a lookup and stores the result.
func (p *pass) applyLookup(
	ctx context.Context, entry *ledger.Entry, lookup reconcile.LookupResult, line *telemetry.LogLine,
) (*ledger.Entry, error) {
	conflicts := 0
	store := func(change func(*ledger.Entry) bool) (*ledger.Entry, error) { return p.applyChange(ctx, entry, change) }
	updated, refundErr, err := p.DailyAmounts.StoreChange(ctx, store, func(e *ledger.Entry) bool {
		now, conflictsBefore := ledger.Timestamp(p.Now()), len(e.Conflicts)
		var effect ledger.Effect
		if lookup.StatusFinal {
			effect = e.ApplyFinalStatus(p.Reconciler.NewStatusReport(e, lookup.Report, reconcile.SourceStatus), now)
		} else {
			effect = e.Expire(p.PaymentLifetime, now)
		}
		conflicts = len(e.Conflicts) - conflictsBefore
		return effect != ledger.Unchanged
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

// needsManualResolution reports whether a payment that is still not final needs a person. One case is a payment past
// its lifetime: without a response, with an unconfirmed claim of success, or with another amount. The other case is a
// payment that has been unknown for StaleAfter, and whose lookup has no response.
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

// nextPollAt returns when an entry is due again if this lookup does not end it. A payment follows the schedule, but has
// a lookup at the end of its lifetime, which may expire it; after that it has one each UnresponsiveRetry. An entry
// without a lookup is listed again after the last wait of the schedule.
func (p *pass) nextPollAt(e *ledger.Entry, now time.Time) time.Time {
	last := len(p.PollSchedule) - 1
	lifetimeEnd := e.ReservedAt.Add(p.PaymentLifetime)
	switch {
	case e.Kind != ledger.Payment && now.Sub(e.ReservedAt) > p.PaymentLifetime:
		return now.Add(p.PaymentLifetime) // listed often enough: now daily
	case e.Kind != ledger.Payment:
		return now.Add(p.PollSchedule[last])
	case !now.Before(lifetimeEnd):
		return now.Add(p.UnresponsiveRetry)
	}
	next := now.Add(p.PollSchedule[min(e.PollAttempts+1, last)])
	if next.After(lifetimeEnd) {
		return lifetimeEnd
	}
	return next
}
