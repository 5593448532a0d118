package operation

import (
	"context"
	"errors"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/money"
	"mobilegateway/shared/telemetry"
)

// RateLimiter takes requests out of a merchant's bucket; *limit.Rate is the one that ships. It is asked only for merchants that
// have a limit.
type RateLimiter interface {
	Take(ctx context.Context, merchantID string, perSecond, burst int) (wait time.Duration, err error)
}

var _ RateLimiter = (*limit.RateLimiter)(nil)

// checkRate refuses a request that is over its merchant's rate: Throttled, with the time to wait. Where the table does not
// answer the request comes in: this limit guards capacity, and the API has another in front of it (decision
// "merchant-limits").
func checkRate(ctx context.Context, req *apigw.Request, profile *merchant.Profile, rate RateLimiter) error {
	perSecond, burst, limited := profile.RateLimit()
	if !limited {
		return nil
	}
	wait, err := rate.Take(ctx, profile.ID, perSecond, burst)
	if err != nil {
		req.LogLine.Increment(telemetry.LimitStoreFailures)
		req.LogLine.SetCause(err)
		return nil
	}
	if wait <= 0 {
		return nil
	}
	req.LogLine.Increment(telemetry.RateLimitedRequests)
	return &fault.Fault{Kind: fault.RateLimited, RetryAfter: int((wait + time.Second - 1) / time.Second)}
}

// ReserveDailyAmount counts a held charge or payment against its merchant's amount of the day, before the operator is called. A nil
// error: go on. DailyLimitExceeded: it does not fit, nothing was sent, and a key under which nothing was ever sent binds no body.
// OperatorUnavailable: the table does not answer, and the reservation was given back; OutcomeUnknown where an earlier attempt
// may have been applied. One that was ever unknown is counted and never refused: a refusal would say that it was not
// applied (decisions "merchant-limits" and "unknown-sticks").
func (d *Pipeline) ReserveDailyAmount(ctx context.Context, req *apigw.Request, profile *merchant.Profile, reservation *ledger.Entry) error {
	if !reservation.CountsDailyAmount {
		return nil
	}
	maxAmount, limited := profile.DailyAmountLimit(reservation.Currency)
	if !limited || reservation.EverUnknown {
		maxAmount = limit.Unlimited
	}
	reserveErr := d.DailyAmounts.Reserve(ctx, reservation, reservation.Version, maxAmount)
	if reserveErr == nil {
		return nil
	}
	var overLimit *limit.OverLimitError
	if errors.As(reserveErr, &overLimit) {
		updated, err := d.Book.StoreOutcome(ctx, reservation, ledger.CallOutcome{State: ledger.Released, UnbindBody: true})
		if err != nil {
			return fault.NewInternal(err)
		}
		if updated.State != ledger.Released { // a success was claimed meanwhile, or a successor is at work
			return fault.New(fault.OutcomeUnknown)
		}
		req.LogLine.Increment(telemetry.DailyLimitRefusals)
		return &fault.Fault{Kind: fault.DailyLimitExceeded, Value: money.Format(overLimit.Remaining, reservation.Exponent), Part: reservation.Currency}
	}
	req.LogLine.Increment(telemetry.LimitStoreFailures)
	updated, err := d.Book.StoreOutcome(ctx, reservation, ledger.CallOutcome{State: ledger.Released})
	if err != nil || updated.State != ledger.Released {
		return &fault.Fault{Kind: fault.OutcomeUnknown, Cause: errors.Join(reserveErr, err)}
	}
	d.refundLimit(ctx, req, updated)
	return &fault.Fault{Kind: fault.OperatorUnavailable, Cause: reserveErr}
}

// refundLimit takes the amount of an entry that was certainly not applied out of its day again. Where that fails it stays
// counted until the day is over, and the answer is the same.
func (d *Pipeline) refundLimit(ctx context.Context, req *apigw.Request, e *ledger.Entry) {
	if !e.CountsDailyAmount || !e.NotApplied() {
		return
	}
	if err := d.DailyAmounts.Refund(ctx, e); err != nil {
		req.LogLine.Increment(telemetry.LimitStoreFailures)
		req.LogLine.SetCause(err)
	}
}
