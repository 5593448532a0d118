package reconcile

import (
	"context"
	"errors"
	"fmt"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
)

// ErrAmountNotReserved says that a success was not stored because its amount could not be counted first: it is to be reported, or
// asked about, again.
var ErrAmountNotReserved = errors.New("settlement: the amount could not be counted")

// StoreFunc applies a change to an entry and stores it, if the change says that there was something to change. It may apply it
// several times, each time to the entry as it stands then.
type StoreFunc func(change func(*ledger.Entry) bool) (*ledger.Entry, error)

// StoreAndAdjustLimit stores a change that may end a payment, and keeps its merchant's amount of the day in step with it (decision
// "merchant-limits"). What ends as not applied is given back after it is stored: a crash between leaves too much counted,
// never too little. A late success of a released payment, which was given back, is counted again before it is stored, and
// not stored if that fails (ErrAmountNotReserved). uncounted is why an amount could not be given back: the change is stored all the same.
func (d *Reconciler) StoreAndAdjustLimit(ctx context.Context, store StoreFunc, change func(*ledger.Entry) bool) (updated *ledger.Entry, refundErr, err error) {
	var revivedFrom *ledger.Entry
	notApplied := false
	updated, err = store(func(e *ledger.Entry) bool {
		before := e.Clone()
		changed := change(e)
		notApplied = changed && e.CountsDailyAmount && e.NotApplied()
		if changed && e.CountsDailyAmount && before.NotApplied() && !e.NotApplied() {
			revivedFrom = before
			return false
		}
		return changed
	})
	if err == nil && revivedFrom != nil {
		return d.reviveAndStore(ctx, revivedFrom, store, change)
	}
	if err == nil && notApplied {
		refundErr = d.DailyAmounts.Refund(ctx, updated)
	}
	return updated, refundErr, err
}

// reviveAndStore counts a payment that was not applied and is now, and stores it then. The operator has applied it: it is
// never refused.
func (d *Reconciler) reviveAndStore(ctx context.Context, before *ledger.Entry, store StoreFunc, change func(*ledger.Entry) bool) (updated *ledger.Entry, refundErr, err error) {
	if err := d.DailyAmounts.Reserve(ctx, before, before.Version+1, limit.Unlimited); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrAmountNotReserved, err)
	}
	updated, err = store(change)
	if err == nil && updated.NotApplied() {
		refundErr = d.DailyAmounts.Refund(ctx, updated)
	}
	return updated, refundErr, err
}
