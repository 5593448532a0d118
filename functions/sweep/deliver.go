package sweep

import (
	"context"
	"time"

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/telemetry"
)

// maxFailingServerSlots bounds the concurrent attempts at a failing server, by its stored health. A server that is only
// slow has no such bound: all its notifications come here, so they wait in line as long as this pass finds it well.
const maxFailingServerSlots = 2

// parkedAlarmAge is how long a parked notification counts for its alarm: a merchant that is gone must not keep it on.
const parkedAlarmAge = 7 * 24 * time.Hour

// notifiedSince is when the first notification of the outbox was queued.
func notifiedSince(e *ledger.Entry) time.Time { return e.Outbox.Head().At }

// prepareDelivery reads the endpoint of the first notification of the outbox. At a disabled endpoint the notification
// is parked: no attempt is due until the endpoint is enabled again (decision "notifications").
func (p *pass) prepareDelivery(ctx context.Context, e *ledger.Entry) (preparedJob, error) {
	target, err := p.courier.FindTarget(ctx, e)
	if err != nil {
		return preparedJob{}, err
	}
	if !target.Enabled() {
		return preparedJob{do: p.park}, nil
	}
	server, most := target.Server(), 0
	if target.Failures > 0 && !target.AllowsFastPath() {
		most = maxFailingServerSlots
	}
	dependencies := []dependency{{serverOf, server.MerchantID + " " + server.Origin}, {merchantOf, server.MerchantID}}
	do := func(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
		return p.post(ctx, entry, target, line)
	}
	return preparedJob{requirement{dependencies: dependencies, most: most}, do}, nil
}

func (p *pass) park(ctx context.Context, entry *ledger.Entry, _ *telemetry.LogLine) (*ledger.Entry, error) {
	now := ledger.Timestamp(p.Now())
	return p.applyChange(ctx, entry, func(e *ledger.Entry) ledger.Transition {
		return ledger.Park.If(e.Outbox.Park(now))
	})
}

// post leases the first notification of the outbox, posts it and stores the result.
func (p *pass) post(
	ctx context.Context, entry *ledger.Entry, target delivery.Target, line *telemetry.LogLine,
) (*ledger.Entry, error) {
	now := ledger.Timestamp(p.Now())
	entry, leased, err := delivery.Store(ctx, p.Book, entry, func(e *ledger.Entry) ledger.Transition {
		return ledger.LeaseDelivery.If(e.Outbox.ClaimDelivery(now))
	})
	if err != nil || leased == ledger.NoTransition {
		return entry, err
	}
	if entry.Outbox.UnrecordedAttempts == 0 { // too many were: the lease made a dead letter
		line.Increment(telemetry.DeadLetters)
		return entry, nil
	}
	attempt := delivery.Attempt{DeliveryClaim: *entry.Outbox.HeadClaim(), Target: target}
	return p.applyChange(ctx, entry, p.courier.PostNotification(ctx, entry, attempt, line))
}

// prepareParkedCheck reads the endpoint of a parked notification again. It may have been enabled while the notification
// was being parked; then the notification is due again.
func (p *pass) prepareParkedCheck(ctx context.Context, e *ledger.Entry) (preparedJob, error) {
	enabled, err := p.Courier.EndpointEnabled(ctx, e)
	return preparedJob{do: func(
		ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine,
	) (*ledger.Entry, error) {
		now := ledger.Timestamp(p.Now())
		if age := now.Sub(notifiedSince(entry)); !enabled && age <= parkedAlarmAge {
			line.SetParkedAge(age)
		}
		return p.applyChange(ctx, entry, func(e *ledger.Entry) ledger.Transition {
			if !e.Outbox.ParkedCheckDue(now) {
				return ledger.NoTransition
			}
			if enabled {
				return ledger.Unpark.If(e.Outbox.Unpark(now))
			}
			return ledger.Postpone.If(e.Outbox.PostponeParkedCheck(now))
		})
	}}, err
}

// bind binds a sent SMS to its operator's id, which the send could not, and applies the receipts that came before
// (decision "static-callbacks").
func (p *pass) bind(ctx context.Context, entry *ledger.Entry, _ *telemetry.LogLine) (*ledger.Entry, error) {
	now := ledger.Timestamp(p.Now())
	entry, leased, err := delivery.Store(ctx, p.Book, entry, func(e *ledger.Entry) ledger.Transition {
		return ledger.LeaseBinding.If(e.ClaimBind(now))
	})
	if err != nil || leased == ledger.NoTransition {
		return entry, err
	}
	early, err := p.Messages.BindMessage(ctx, entry.Route.Account, entry.OperatorReference, entry.ID, entry.ExpireAt)
	if err != nil {
		return entry, err
	}
	return p.applyChange(ctx, entry, func(e *ledger.Entry) ledger.Transition {
		return ledger.RecordBinding.If(e.RecordBound(early, now))
	})
}

func (p *pass) prepareUserSMS(_ context.Context, e *ledger.Entry) (preparedJob, error) {
	return preparedJob{requirement{dependencies: []dependency{{userSMSOf, e.Route.Operator}}}, p.sendUserSMS}, nil
}

// sendUserSMS leases the payer's SMS, sends it and stores the result.
func (p *pass) sendUserSMS(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
	now := ledger.Timestamp(p.Now())
	entry, made, err := delivery.Store(ctx, p.Book, entry, func(e *ledger.Entry) ledger.Transition {
		return ledger.LeaseUserSMS.If(e.ClaimUserSMS(now))
	})
	if err == nil && made != ledger.NoTransition && !entry.UserSMS.GivenUp() {
		record := p.Courier.SendUserSMS(ctx, entry, entry.UserSMSClaim())
		entry, made, err = delivery.Store(ctx, p.Book, entry, record)
	}
	if err == nil && made != ledger.NoTransition && entry.UserSMS.GivenUp() {
		line.Increment(telemetry.UserSMSFailures)
	}
	return entry, err
}
