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

// Rate takes requests out of a merchant's bucket; *limit.Rate is the one that ships. It is asked only for merchants that
// have a limit.
type Rate interface {
	Take(ctx context.Context, merchantID string, perSecond, burst int) (wait time.Duration, err error)
}

var _ Rate = (*limit.Rate)(nil)

// throttle refuses a request that is over its merchant's rate: Throttled, with the time to wait. Where the table does not
// answer the request comes in: this limit guards capacity, and the API has another in front of it (decision
// "merchant-limits").
func throttle(ctx context.Context, req *apigw.Request, profile *merchant.Profile, rate Rate) error {
	perSecond, burst, on := profile.Rate()
	if !on {
		return nil
	}
	wait, err := rate.Take(ctx, profile.ID, perSecond, burst)
	if err != nil {
		req.Event.Count(telemetry.LimitFailures)
		req.Event.SetCause(err)
		return nil
	}
	if wait <= 0 {
		return nil
	}
	req.Event.Count(telemetry.Throttled)
	return &fault.Fault{Kind: fault.Throttled, RetryAfter: int((wait + time.Second - 1) / time.Second)}
}

// Spend counts a held charge or payment against its merchant's amount of the day, before the operator is called. A nil
// error: go on. OverLimit: it does not fit, nothing was sent, and a key under which nothing was ever sent binds no body.
// OperatorDown: the table does not answer, and the reservation was given back; OutcomeUnknown where an earlier attempt
// may have been applied. One that was ever unknown is counted and never refused: a refusal would say that it was not
// applied (decisions "merchant-limits" and "unknown-sticks").
func (d *Desk) Spend(ctx context.Context, req *apigw.Request, profile *merchant.Profile, held *ledger.Entry) error {
	if !held.Limited {
		return nil
	}
	most, on := profile.DailyLimit(held.Currency)
	if !on || held.EverUnknown {
		most = limit.Unlimited
	}
	failure := d.Amounts.Count(ctx, held, held.Version, most)
	if failure == nil {
		return nil
	}
	var over *limit.Over
	if errors.As(failure, &over) {
		settled, err := d.Book.Settle(ctx, held, ledger.Settlement{State: ledger.Released, Unbind: true})
		if err != nil {
			return fault.Because(err)
		}
		if settled.State != ledger.Released { // a success was claimed meanwhile, or a successor is at work
			return fault.Of(fault.OutcomeUnknown)
		}
		req.Event.Count(telemetry.LimitRefused)
		return &fault.Fault{Kind: fault.OverLimit, Value: money.Format(over.Left, held.Exponent), Part: held.Currency}
	}
	req.Event.Count(telemetry.LimitFailures)
	settled, err := d.Book.Settle(ctx, held, ledger.Settlement{State: ledger.Released})
	if err != nil || settled.State != ledger.Released {
		return &fault.Fault{Kind: fault.OutcomeUnknown, Cause: errors.Join(failure, err)}
	}
	d.giveBack(ctx, req, settled)
	return &fault.Fault{Kind: fault.OperatorDown, Cause: failure}
}

// giveBack takes the amount of an entry that was certainly not applied out of its day again. Where that fails it stays
// counted until the day is over, and the answer is the same.
func (d *Desk) giveBack(ctx context.Context, req *apigw.Request, e *ledger.Entry) {
	if !e.Limited || !e.NotApplied() {
		return
	}
	if err := d.Amounts.GiveBack(ctx, e); err != nil {
		req.Event.Count(telemetry.LimitFailures)
		req.Event.SetCause(err)
	}
}
