package sweep

import (
	"context"
	"sync"
	"time"

	"mobilegateway/shared/circuit"
	"mobilegateway/shared/confirm"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/telemetry"
	"mobilegateway/shared/timeline"
)

// listDue is true for a charge or an SMS whose listing is due, paymentLookupDue for a payment whose lookup is.
func listDue(e *ledger.Entry, now time.Time) bool {
	return e.Kind != ledger.Payment && e.LookupDue(now)
}

func paymentLookupDue(e *ledger.Entry, now time.Time) bool {
	return e.Kind == ledger.Payment && e.LookupDue(now)
}

// lapse marks a reservation whose lease has lapsed as unknown, because it may have been sent (decision "leases").
// The lookup of a payment is due at once. Another entry is due for a person's list after StaleAfter.
func (p *pass) lapse(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
	now := ledger.Timestamp(p.Now())
	next := now
	if entry.Kind != ledger.Payment {
		next = now.Add(ledger.StaleAfter)
	}
	entry, lapsed, err := delivery.Store(ctx, p.Book, entry, func(e *ledger.Entry) ledger.Transition {
		return ledger.Lapse.If(e.MarkLapsed(now, next))
	})
	if err == nil && lapsed != ledger.NoTransition && entry.State == ledger.Unknown {
		line.Increment(telemetry.UnknownOutcomes)
	}
	return entry, err
}

// list counts an unknown charge or SMS for the alarm. There is no lookup for it: it waits for the merchant's retry
// or a person (decision "repeat-window").
func (p *pass) list(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
	entry, leased, err := p.leaseLookup(ctx, entry, ledger.Timestamp(p.Now()), false)
	if err == nil && leased {
		line.Increment(telemetry.StaleUnknownOutcomes)
	}
	return entry, err
}

// prepareLookup requires a slot of the platform, and a lookup out of the account's rate if the platform's row has one.
// An open circuit refuses no lookup (decision "circuit-breaker").
func (p *pass) prepareLookup(ctx context.Context, e *ledger.Entry) (preparedJob, error) {
	account, row := operator.PinOf(e), operator.CapabilitiesOf(e)
	phase, _ := p.Circuits.Phase(circuit.Key{Account: account.String(), Operation: operator.AccountPay})
	required := requirement{
		dependencies: []dependency{{lookupOf, account.Platform}}, startsSlow: phase >= circuit.Open,
	}
	if _, supported := p.Confirmer.Operators.StatusLookup(e); supported && row.LookupsPerSecond > 0 {
		required.dependencies = append([]dependency{{rateOf, account.String()}}, required.dependencies...)
		required.rate = p.newLookupRate(ctx, account, row)
	}
	return preparedJob{required, p.lookUp}, nil
}

// lookUp looks a payment up at its operator and applies the response (decisions "pay-poll" and "pay-claims"). A
// final status is stored. After the end of the payment's lifetime, another response expires it. Otherwise it is polled
// again later.
func (p *pass) lookUp(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
	now := ledger.Timestamp(p.Now())
	_, isMade := p.Confirmer.Operators.StatusLookup(entry)
	entry, leased, err := p.leaseLookup(ctx, entry, now, isMade)
	if err != nil || !leased {
		return entry, err
	}
	start := p.Now()
	lookup := p.Confirmer.LookUp(ctx, entry)
	lookup.LeasedAt = now
	line.AddOperatorTime(p.Now().Sub(start))
	if lookup.Failed() {
		line.Increment(telemetry.LookupFailures)
		line.SetCause(lookup.Cause)
	} else {
		store := func(change func(*ledger.Entry) ledger.Transition) (*ledger.Entry, error) {
			return p.applyChange(ctx, entry, change)
		}
		entry, err = p.Confirmer.Store(ctx, line, store, func(e *ledger.Entry) ledger.Transition {
			return p.Confirmer.ApplyLookup(e, lookup, p.PaymentLifetime, ledger.Timestamp(p.Now()))
		})
	}
	if isMade && err == nil && !entry.StatusFinal() {
		p.results.keep(entry.Key, lookup.TimelineEvent(now))
	}
	if err == nil && p.needsManualResolution(entry, lookup, now) {
		line.Increment(telemetry.StaleUnknownOutcomes)
	}
	return entry, err
}

// leaseLookup leases the lookup, or the listing, of an entry by the write of its next time. The write also keeps the
// result of the lookup before it in the timeline, if this process knows it.
func (p *pass) leaseLookup(
	ctx context.Context, entry *ledger.Entry, now time.Time, isMade bool,
) (stored *ledger.Entry, leased bool, err error) {
	stored, made, err := delivery.Store(ctx, p.Book, entry, func(e *ledger.Entry) ledger.Transition {
		due := e.LookupDue(now)
		if due && isMade {
			e.CompleteReport(p.results.of(e.Key))
			e.AddReport(timeline.Event{Kind: timeline.Lookup, At: now})
		}
		if due {
			e.ReschedulePoll(p.nextPollAt(e, now))
		}
		return ledger.LeaseLookup.If(due)
	})
	return stored, made != ledger.NoTransition, err
}

// maxLookupResults bounds the results that a process remembers.
const maxLookupResults = 4096

// lookupResults are the last results of lookups that no write followed, by the payment. The lease of its next lookup
// stores the result: a write of its own would double what a lookup costs. Another process does not know it, and it is
// for people only. It is safe for concurrent use.
type lookupResults struct {
	mutex sync.Mutex
	last  map[ledger.Key]timeline.Event
}

func (r *lookupResults) keep(key ledger.Key, result timeline.Event) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.last == nil || len(r.last) >= maxLookupResults {
		r.last = map[ledger.Key]timeline.Event{}
	}
	r.last[key] = result
}

// of returns the last result of a payment, which has no kind if there is none.
func (r *lookupResults) of(key ledger.Key) timeline.Event {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.last[key]
}

// needsManualResolution reports whether a payment that is still not final needs a person. One case is a claim of
// success that is flagged. Another is a payment past its lifetime, unless its claim of success is newer and its
// operator responds. The last is a payment that has been unknown for StaleAfter without a response to its lookup.
func (p *pass) needsManualResolution(e *ledger.Entry, lookup confirm.LookupResult, now time.Time) bool {
	age := now.Sub(e.ReservedAt)
	switch {
	case e.StatusFinal() || e.Poll.At.IsZero() && e.Claim.Status == "":
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
		wait = min(p.PollSchedule[min(e.Poll.Attempts+1, last)], p.PaymentLifetime-age)
	}
	return now.Add(wait)
}
