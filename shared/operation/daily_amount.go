package operation

import (
	"context"
	"errors"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/money"
	"mobilegateway/shared/telemetry"
)

// ReserveDailyAmount counts a reservation in the merchant's day, before the operator is called. After a nil
// error the caller continues. After any other error this attempt sends nothing (decision "merchant-limits"):
//
//   - DailyLimitExceeded: the amount does not fit, and the reservation is released. A key under which nothing was ever
//     sent binds no body.
//   - OperatorUnavailable: the table of limits does not respond, and the reservation is released.
//   - OutcomeUnknown: an earlier attempt may have been applied (decision "unknown-sticks").
//   - Internal: the refusal could not be stored.
func (p *Pipeline) ReserveDailyAmount(
	ctx context.Context, req *apigw.Request, profile *merchant.Profile, reservation *ledger.Entry,
) error {
	reserveErr := p.DailyAmounts.Reserve(ctx, profile, reservation)
	if reserveErr == nil {
		return nil
	}
	var overLimit *dailyamount.OverLimitError
	if errors.As(reserveErr, &overLimit) {
		return p.refuseOverLimit(ctx, req, reservation, overLimit)
	}
	req.LogLine.Increment(telemetry.LimitStoreFailures)
	updated, err := p.Book.StoreOutcome(ctx, reservation, ledger.CallOutcome{
		State: ledger.Released, Call: NotSent("limit-store", fault.OperatorUnavailable),
	})
	if err != nil || updated.State != ledger.Released {
		return &fault.Fault{Kind: fault.OutcomeUnknown, Cause: errors.Join(reserveErr, err)}
	}
	p.refundDailyAmount(ctx, req, reservation, updated)
	return &fault.Fault{Kind: fault.OperatorUnavailable, Cause: reserveErr}
}

// refuseOverLimit releases a reservation whose amount does not fit, and returns the refusal with the amount that
// remains.
func (p *Pipeline) refuseOverLimit(
	ctx context.Context, req *apigw.Request, reservation *ledger.Entry, overLimit *dailyamount.OverLimitError,
) error {
	released := ledger.CallOutcome{
		State: ledger.Released, UnbindBody: true, Call: NotSent("daily-amount", fault.DailyLimitExceeded),
	}
	updated, err := p.Book.StoreOutcome(ctx, reservation, released)
	if err != nil {
		return fault.NewInternal(err)
	}
	if updated.State != ledger.Released { // a success was claimed in the meantime, or a successor is at work
		return fault.New(fault.OutcomeUnknown)
	}
	req.LogLine.Increment(telemetry.DailyLimitRefusals)
	remaining := money.Format(overLimit.Remaining, reservation.Exponent)
	return &fault.Fault{Kind: fault.DailyLimitExceeded, Value: remaining, Part: reservation.Currency}
}

// refundDailyAmount refunds the amount of an entry that was certainly not applied. It also refunds a reservation whose
// entry has moved to a later day, because a retry may have come before this attempt's refund. If it fails, the amount
// stays counted until the day is over, and the response stays the same.
func (p *Pipeline) refundDailyAmount(ctx context.Context, req *apigw.Request, reservation, updated *ledger.Entry) {
	err := errors.Join(p.DailyAmounts.Refund(ctx, updated), p.DailyAmounts.RefundMoved(ctx, reservation, updated))
	if err != nil {
		req.LogLine.Increment(telemetry.LimitStoreFailures)
		req.LogLine.SetCause(err)
	}
}
