package sweep

import (
	"context"
	"time"

	"mobilegateway/shared/confirm"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/telemetry"
)

// lapseAct marks a reservation whose lease has lapsed as unknown, because it may have been sent (decision "leases").
// The lookup of a payment is due at once. Another entry is due for a person's list after StaleAfter.
type lapseAct struct{ *pass }

func (a lapseAct) due(e *ledger.Entry, now time.Time) bool { return e.LapseDue(now) }

func (a lapseAct) prepare(context.Context, *ledger.Entry) (need, doFunc, error) {
	return need{}, a.lapse, nil
}

func (a lapseAct) possibleSince(e *ledger.Entry) time.Time { return e.LeaseUntil }

func (a lapseAct) postpone(*ledger.Entry, time.Time, time.Time) bool { return false } // it needs only its own write

func (a lapseAct) lapse(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
	now := ledger.Timestamp(a.Now())
	next := now
	if entry.Kind != ledger.Payment {
		next = now.Add(ledger.StaleAfter)
	}
	lapsed := false
	entry, err := a.applyChange(ctx, entry, func(e *ledger.Entry) bool {
		lapsed = e.MarkLapsed(now, next)
		return lapsed
	})
	if err == nil && lapsed && entry.State == ledger.Unknown {
		line.Increment(telemetry.UnknownOutcomes)
	}
	return entry, err
}

// listAct counts an unknown charge or SMS for the alarm. There is no lookup for it: it waits for the merchant's retry
// or a person (decision "repeat-window").
type listAct struct{ *pass }

func (a listAct) due(e *ledger.Entry, now time.Time) bool {
	return e.Kind != ledger.Payment && e.LookupDue(now)
}

func (a listAct) prepare(context.Context, *ledger.Entry) (need, doFunc, error) {
	return need{}, func(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
		entry, claimed, err := a.claimLookup(ctx, entry)
		if err == nil && claimed {
			line.Increment(telemetry.StaleUnknownOutcomes)
		}
		return entry, err
	}, nil
}

func (a listAct) possibleSince(e *ledger.Entry) time.Time { return e.ReservedAt }

func (a listAct) postpone(*ledger.Entry, time.Time, time.Time) bool { return false } // it needs only its own write

// lookupAct looks a payment up at its operator and applies the response (decisions "pay-poll" and "pay-claims"). A
// final status is stored. After the end of the payment's lifetime, another response expires it. Otherwise it is polled
// again later. The write of the next poll time claims the lookup.
type lookupAct struct{ *pass }

func (a lookupAct) due(e *ledger.Entry, now time.Time) bool {
	return e.Kind == ledger.Payment && e.LookupDue(now)
}

func (a lookupAct) prepare(_ context.Context, e *ledger.Entry) (need, doFunc, error) {
	return need{dependencies: []dependency{{lookupOf, operator.PinOf(e).Platform}}}, a.lookUp, nil
}

func (a lookupAct) possibleSince(e *ledger.Entry) time.Time { return e.ReservedAt }

func (a lookupAct) postpone(e *ledger.Entry, now, next time.Time) bool {
	return e.PostponeLookup(now, next)
}

func (a lookupAct) lookUp(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
	now := ledger.Timestamp(a.Now())
	entry, claimed, err := a.claimLookup(ctx, entry)
	if err != nil || !claimed {
		return entry, err
	}
	start := a.Now()
	lookup := a.Confirmer.LookUp(ctx, entry)
	line.AddOperatorTime(a.Now().Sub(start))
	if lookup.Failed() {
		line.Increment(telemetry.LookupFailures)
		line.SetCause(lookup.Cause)
	} else {
		store := func(change func(*ledger.Entry) bool) (*ledger.Entry, error) { return a.applyChange(ctx, entry, change) }
		entry, err = a.Confirmer.Store(ctx, line, store, func(e *ledger.Entry) bool {
			return a.Confirmer.ApplyLookup(e, lookup, a.PaymentLifetime, ledger.Timestamp(a.Now()))
		})
	}
	if err == nil && a.needsManualResolution(entry, lookup, now) {
		line.Increment(telemetry.StaleUnknownOutcomes)
	}
	return entry, err
}

// claimLookup claims the lookup, or the listing, of an entry by the write of its next time.
func (p *pass) claimLookup(ctx context.Context, entry *ledger.Entry) (stored *ledger.Entry, claimed bool, err error) {
	now := ledger.Timestamp(p.Now())
	stored, err = p.applyChange(ctx, entry, func(e *ledger.Entry) bool {
		claimed = e.LookupDue(now)
		if claimed {
			e.ReschedulePoll(p.nextPollAt(e, now))
		}
		return claimed
	})
	return stored, claimed, err
}

// needsManualResolution reports whether a payment that is still not final needs a person. One case is a claim of
// success that is flagged. Another is a payment past its lifetime, unless its claim of success is newer and its
// operator responds. The last is a payment that has been unknown for StaleAfter without a response to its lookup.
func (p *pass) needsManualResolution(e *ledger.Entry, lookup confirm.LookupResult, now time.Time) bool {
	age := now.Sub(e.ReservedAt)
	switch {
	case e.StatusFinal() || e.PollAt.IsZero() && e.Claim.Status == "":
		return false
	case e.ClaimFlagged(now):
		return true
	case age >= p.PaymentLifetime:
		return !lookup.Responded || e.Claim.Status != ledger.Successful
	default:
		return !lookup.Responded && e.State == ledger.Unknown && age >= ledger.StaleAfter
	}
}

// nextPollAt returns when an entry is due again if this lookup does not end it. A payment follows the schedule, but has
// a lookup at the end of its lifetime, which may expire it; after that it has one each UnresponsiveRetry. A flagged
// claim has one each FlaggedClaimInterval, but a later attempt to pay gets its own schedule first. An entry without a
// lookup is listed again after the last wait of the schedule. A released payment has no lookup after its lifetime.
func (p *pass) nextPollAt(e *ledger.Entry, now time.Time) time.Time {
	last, age := len(p.PollSchedule)-1, now.Sub(e.ReservedAt)
	wait := p.PollSchedule[last]
	switch {
	case e.Kind != ledger.Payment && age > p.PaymentLifetime:
		wait = p.PaymentLifetime // listed often enough: now daily
	case e.Kind != ledger.Payment:
	case e.State == ledger.Released && e.Claim.Status == "" && age >= p.PaymentLifetime:
		return time.Time{}
	case e.ClaimFlagged(now) && age >= ledger.ClaimFlagAfter:
		wait = ledger.FlaggedClaimInterval
	case age >= p.PaymentLifetime:
		wait = p.UnresponsiveRetry
	default:
		wait = min(p.PollSchedule[min(e.PollAttempts+1, last)], p.PaymentLifetime-age)
	}
	return now.Add(wait)
}
