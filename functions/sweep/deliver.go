package sweep

import (
	"context"
	"time"

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/telemetry"
)

// maxFailingServerPlaces bounds the concurrent attempts at a failing server, maxSlowServerPlaces those at a slow one,
// by the server's stored health.
const (
	maxFailingServerPlaces = 2
	maxSlowServerPlaces    = 8
)

// parkedAlarmAge is how long a parked notification counts for the alarm of stalled work: a merchant that is gone must
// not keep it on.
const parkedAlarmAge = 7 * 24 * time.Hour

// deliveryAct claims the first notification of the outbox, posts it and stores the result. At a disabled endpoint it
// parks the notification: no attempt is due until the endpoint is enabled again (decision "notifications").
type deliveryAct struct{ *pass }

func (a deliveryAct) due(e *ledger.Entry, now time.Time) bool { return e.DeliveryDue(now) }

func (a deliveryAct) possibleSince(e *ledger.Entry) time.Time { return e.OutboxHead().At }

func (a deliveryAct) postpone(e *ledger.Entry, now, next time.Time) bool {
	return e.PostponeDelivery(now, next)
}

func (a deliveryAct) prepare(ctx context.Context, e *ledger.Entry) (need, doFunc, error) {
	target, err := a.Courier.FindTarget(ctx, e)
	if err != nil {
		return need{}, nil, err
	}
	if !target.Enabled() {
		return need{}, a.park, nil
	}
	server := target.Server()
	needed := need{dependencies: []dependency{
		{serverOf, server.MerchantID + " " + server.Origin}, {merchantOf, server.MerchantID},
	}}
	switch {
	case target.AllowsFastPath():
	case target.Failures == 0:
		needed.most = maxSlowServerPlaces
	default:
		needed.most = maxFailingServerPlaces
	}
	return needed, func(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
		return a.post(ctx, entry, target, line)
	}, nil
}

func (a deliveryAct) park(ctx context.Context, entry *ledger.Entry, _ *telemetry.LogLine) (*ledger.Entry, error) {
	now := ledger.Timestamp(a.Now())
	return a.applyChange(ctx, entry, func(e *ledger.Entry) bool { return e.Park(now) })
}

func (a deliveryAct) post(
	ctx context.Context, entry *ledger.Entry, target delivery.Target, line *telemetry.LogLine,
) (*ledger.Entry, error) {
	now := ledger.Timestamp(a.Now())
	var claim *ledger.DeliveryClaim
	changed := false
	entry, err := a.applyChange(ctx, entry, func(e *ledger.Entry) bool {
		claim, changed = e.ClaimDelivery(now)
		return changed
	})
	if err != nil || claim == nil {
		if err == nil && changed {
			line.Increment(telemetry.DeadLetters)
		}
		return entry, err
	}
	result := a.Courier.PostNotification(ctx, entry, *claim, target, time.Time{}, line)
	return a.applyChange(ctx, entry, result)
}

// parkedAct reads the endpoint of a parked notification again. It may have been enabled while the notification was
// being parked; then the notification is due again.
type parkedAct struct{ *pass }

func (a parkedAct) due(e *ledger.Entry, now time.Time) bool { return e.ParkedCheckDue(now) }

func (a parkedAct) possibleSince(e *ledger.Entry) time.Time { return e.OutboxHead().At }

func (a parkedAct) postpone(e *ledger.Entry, now, _ time.Time) bool {
	return e.PostponeParkedCheck(now)
}

func (a parkedAct) prepare(ctx context.Context, e *ledger.Entry) (need, doFunc, error) {
	enabled, err := a.Courier.EndpointEnabled(ctx, e)
	return need{}, func(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
		now := ledger.Timestamp(a.Now())
		if age := now.Sub(a.possibleSince(entry)); !enabled && age <= parkedAlarmAge {
			line.SetStalledAge(age)
		}
		return a.applyChange(ctx, entry, func(e *ledger.Entry) bool {
			if !e.ParkedCheckDue(now) {
				return false
			}
			if enabled {
				return e.Unpark(now)
			}
			return e.PostponeParkedCheck(now)
		})
	}, err
}

// bindAct binds a sent SMS to its operator's id, which the send could not, and applies the receipts that came before
// (decision "static-callbacks").
type bindAct struct{ *pass }

func (a bindAct) due(e *ledger.Entry, now time.Time) bool { return e.BindDue(now) }

func (a bindAct) possibleSince(e *ledger.Entry) time.Time { return e.SentAt }

func (a bindAct) postpone(*ledger.Entry, time.Time, time.Time) bool { return false } // it needs only its own writes

func (a bindAct) prepare(context.Context, *ledger.Entry) (need, doFunc, error) {
	return need{}, a.bind, nil
}

func (a bindAct) bind(ctx context.Context, entry *ledger.Entry, _ *telemetry.LogLine) (*ledger.Entry, error) {
	now, claimed := ledger.Timestamp(a.Now()), false
	entry, err := a.applyChange(ctx, entry, func(e *ledger.Entry) bool {
		claimed = e.ClaimBind(now)
		return claimed
	})
	if err != nil || !claimed {
		return entry, err
	}
	early, err := a.Messages.BindMessage(ctx, entry.Account, entry.OperatorReference, entry.ID, entry.ExpireAt)
	if err != nil {
		return entry, err
	}
	return a.applyChange(ctx, entry, func(e *ledger.Entry) bool { return e.RecordBound(early, now) })
}

// userSMSAct claims the payer's SMS, sends it and stores the result.
type userSMSAct struct{ *pass }

func (a userSMSAct) due(e *ledger.Entry, now time.Time) bool { return e.UserSMSAttemptDue(now) }

func (a userSMSAct) possibleSince(e *ledger.Entry) time.Time { return e.FinalAt }

func (a userSMSAct) postpone(e *ledger.Entry, now, next time.Time) bool {
	return e.PostponeUserSMS(now, next)
}

func (a userSMSAct) prepare(_ context.Context, e *ledger.Entry) (need, doFunc, error) {
	return need{dependencies: []dependency{{userSMSOf, e.Operator}}}, a.send, nil
}

func (a userSMSAct) send(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
	now := ledger.Timestamp(a.Now())
	var claim *ledger.UserSMSClaim
	changed := false
	entry, err := a.applyChange(ctx, entry, func(e *ledger.Entry) bool {
		claim, changed = e.ClaimUserSMS(now)
		return changed
	})
	if err == nil && claim != nil {
		result := a.Courier.SendUserSMS(ctx, entry, *claim)
		entry, err = a.applyChange(ctx, entry, func(e *ledger.Entry) bool {
			changed = result(e)
			return changed
		})
	}
	if err == nil && changed && (entry.UserSMS == ledger.UserSMSFailed || entry.UserSMS == ledger.UserSMSUnknown) {
		line.Increment(telemetry.UserSMSFailures)
	}
	return entry, err
}
