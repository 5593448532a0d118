package dailyamount

import (
	"context"
	"errors"
	"fmt"

	"mobilegateway/shared/ledger"
)

// ErrNotReserved is returned for a success that was not stored because its amount could not be counted first. The
// operator must report it again, or be polled again.
var ErrNotReserved = errors.New("daily amount: the amount could not be counted")

// StoreFunc applies a change to an entry and stores the entry if the change returned true. It may apply the change
// several times, each time to the entry as it is then.
type StoreFunc func(change func(*ledger.Entry) bool) (*ledger.Entry, error)

// maxRevivals bounds how often a late success is counted because its payment was released again meanwhile.
const maxRevivals = 4

// StoreChange stores a change that may end a payment, and keeps the merchant's daily amount in step.
//
// The amount of a payment that ends as not applied is refunded after the change is stored: a crash between the two
// leaves too much counted, never too little. A late success of a payment that was released, whose amount was refunded,
// is counted again before it is stored; if that fails, it is not stored (ErrNotReserved). That holds also after a
// takeover, whose owner may have died before it counted. After a refundErr the amount stays counted; the change is
// stored all the same.
//
// A write of the change may be stored although its response was lost and another write came first. The change then
// finds nothing to do, and the amount is refunded all the same: a second refund does nothing. A payment may also be
// taken over and released again between the count and its write; it is then counted once more.
func (c *Counter) StoreChange(
	ctx context.Context, store StoreFunc, change func(*ledger.Entry) bool,
) (updated *ledger.Entry, refundErr, err error) {
	var released *ledger.Entry // the entry before its late success, which is not stored yet
	sent := false              // a write of the change was sent: it may be stored although another write came first
	counted := int64(-1)       // the version for which the amount was counted again
	for range maxRevivals {
		released = nil
		updated, err = store(func(e *ledger.Entry) bool {
			before := e.Clone()
			changed := change(e)
			isLateSuccess := changed && e.CountsDailyAmount && mayBeUncounted(before) && !mayBeUncounted(e)
			if released = nil; isLateSuccess && before.Version != counted {
				released, changed = before, false
			}
			sent = sent || changed
			return changed
		})
		if err != nil || released == nil {
			break
		}
		// The operator has applied the payment, so the amount is never refused.
		if err = c.reserve(ctx, released, released.Version+1, unlimited); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrNotReserved, err)
		}
		counted = released.Version
	}
	switch {
	case err == nil && released != nil:
		return nil, nil, fmt.Errorf("%w: it is released again and again", ErrNotReserved)
	case err == nil && (sent || counted >= 0):
		refundErr = c.Refund(ctx, updated)
	}
	return updated, refundErr, err
}

// mayBeUncounted is true if an operator may have applied the entry although its amount is not counted. Such an entry is
// released, or was released before and has no final status since.
func mayBeUncounted(e *ledger.Entry) bool {
	return e.NotApplied() || e.ReleasedBefore && !e.StatusFinal()
}
