package confirm

import (
	"context"
	"time"

	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/telemetry"
	"mobilegateway/shared/timeline"
)

// Store stores what a report changes about a payment, and keeps the merchant's daily amount in step. It counts on line
// what contradicts the payment, and an amount that could not be refunded. dailyamount.ErrNotReserved: a success was not
// stored, because its amount could not be counted first.
func (c *Confirmer) Store(
	ctx context.Context, line *telemetry.LogLine, store dailyamount.StoreFunc,
	change func(*ledger.Entry) ledger.Transition,
) (*ledger.Entry, error) {
	stored, err := c.DailyAmounts.StoreChange(ctx, store, change)
	if err != nil {
		return nil, err
	}
	line.Add(telemetry.StatusConflicts, stored.Entry.ContradictionsSince(*stored.Before))
	if stored.RefundErr != nil {
		line.Increment(telemetry.LimitStoreFailures)
		line.SetCause(stored.RefundErr)
	}
	return stored.Entry, nil
}

// ApplyLookup applies the result of a lookup to a payment by the rules of its platform's row (decisions "never-sent",
// "prepare" and "pay-poll"). A lookup that failed changes nothing. A change keeps the lookup in the timeline: without a
// lease it was made by gatewayctl.
func (c *Confirmer) ApplyLookup(
	e *ledger.Entry, lookup LookupResult, lifetime time.Duration, now time.Time,
) ledger.Transition {
	if lookup.Failed() {
		return ledger.NoTransition
	}
	made := c.applyLookup(e, lookup, lifetime, now)
	switch report := lookup.TimelineEvent(now); {
	case made == ledger.NoTransition:
	case !lookup.LeasedAt.IsZero():
		e.CompleteReport(report)
	case lookup.Supported:
		report.Kind = timeline.ManualLookup
		e.AddReport(report)
	}
	return made
}

// applyLookup is ApplyLookup without the timeline.
func (c *Confirmer) applyLookup(
	e *ledger.Entry, lookup LookupResult, lifetime time.Duration, now time.Time,
) (made ledger.Transition) {
	row := operator.CapabilitiesOf(e)
	switch {
	case lookup.StatusFinal:
		report := c.NewStatusReport(e, lookup.Report, ledger.SourceLookup)
		made = ledger.EndPayment.After(e.ApplyFinalStatus(report, now))
	case lookup.NotFound && isNeverSent(row, e, now),
		isUnprepared(row, e) && (lookup.NotFound || !lookup.Responded):
		made = ledger.EndNeverSent.After(e.EndNeverSent(now))
	}
	if made == ledger.NoTransition && lookup.Responded && !lookup.StatusFinal && row.ExpiresPending {
		made = ledger.ExpirePayment.After(e.Expire(lifetime, now))
	}
	if made == ledger.NoTransition && lookup.Responded {
		made = ledger.EndReleasedLookups.If(e.EndReleasedLookups())
	}
	return made
}

// isNeverSent reports whether a payment that its platform does not know was certainly never sent: the platform's row
// declares it, and enough time has passed since the last send (decision "never-sent").
func isNeverSent(row operator.Capabilities, e *ledger.Entry, now time.Time) bool {
	return row.NeverSentAfter > 0 && !now.Before(NeverSentFrom(row, e))
}

// NeverSentFrom returns from when "not found" proves that a payment was never sent, if its platform's row declares it.
func NeverSentFrom(row operator.Capabilities, e *ledger.Entry) time.Time {
	return e.ReservedAt.Add(maxSendTime + row.NeverSentAfter)
}

// maxSendTime is how long after its reservation an attempt can be sent at the latest.
const maxSendTime = time.Minute

// isUnprepared reports whether an unknown payment was never prepared, so that it was never sent (decision "prepare").
func isUnprepared(row operator.Capabilities, e *ledger.Entry) bool {
	return row.Prepares && e.State == ledger.Unknown && e.DriverData == ""
}
