package settlement

import (
	"context"
	"errors"
	"fmt"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
)

// ErrUncounted says that a success was not stored because its amount could not be counted first: it is to be reported, or
// asked about, again.
var ErrUncounted = errors.New("settlement: the amount could not be counted")

// Store applies a change to an entry and stores it, if the change says that there was something to change. It may apply it
// several times, each time to the entry as it stands then.
type Store func(change func(*ledger.Entry) bool) (*ledger.Entry, error)

// Keep stores a change that may end a payment, and keeps its merchant's amount of the day in step with it (decision
// "merchant-limits"). What ends as not applied is given back after it is stored: a crash between leaves too much counted,
// never too little. A late success of a released payment, which was given back, is counted again before it is stored, and
// not stored if that fails (ErrUncounted). uncounted is why an amount could not be given back: the change is stored all the same.
func (d *Desk) Keep(ctx context.Context, store Store, change func(*ledger.Entry) bool) (settled *ledger.Entry, uncounted, err error) {
	var revived *ledger.Entry
	ended := false
	settled, err = store(func(e *ledger.Entry) bool {
		before := e.Clone()
		changed := change(e)
		ended = changed && e.Limited && e.NotApplied()
		if changed && e.Limited && before.NotApplied() && !e.NotApplied() {
			revived = before
			return false
		}
		return changed
	})
	if err == nil && revived != nil {
		return d.keepRevived(ctx, revived, store, change)
	}
	if err == nil && ended {
		uncounted = d.Amounts.GiveBack(ctx, settled)
	}
	return settled, uncounted, err
}

// keepRevived counts a payment that was not applied and is now, and stores it then. The operator has applied it: it is
// never refused.
func (d *Desk) keepRevived(ctx context.Context, before *ledger.Entry, store Store, change func(*ledger.Entry) bool) (settled *ledger.Entry, uncounted, err error) {
	if err := d.Amounts.Count(ctx, before, before.Version+1, limit.Unlimited); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrUncounted, err)
	}
	settled, err = store(change)
	if err == nil && settled.NotApplied() {
		uncounted = d.Amounts.GiveBack(ctx, settled)
	}
	return settled, uncounted, err
}
