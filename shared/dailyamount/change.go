package dailyamount

import (
	"context"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
)

// ErrNotReserved is returned for a success that was not stored because its amount could not be counted first. The
// operator must report it again, or be polled again.
var ErrNotReserved = logsafe.New("daily amount: the amount could not be counted")

// StoreFunc applies a change to an entry and stores the entry, unless the change returned NoTransition. It may apply
// the change several times, each time to the entry as it is then.
type StoreFunc func(change func(*ledger.Entry) ledger.Transition) (*ledger.Entry, error)

// maxRevivals bounds how often a late success is counted because its payment was released again meanwhile.
const maxRevivals = 4

// StoredChange is a change that is stored.
type StoredChange struct {
	// Before is the entry to which the change was applied last, Entry is the entry as stored.
	Before, Entry *ledger.Entry
	// RefundErr is why an amount is still counted that must be refunded. The change is stored all the same.
	RefundErr error
}

// StoreChange stores a change that may end a payment, and keeps the merchant's daily amount in step.
//
// The amount of a payment that ends as not applied is refunded after the change is stored: a crash between the two
// leaves too much counted, never too little. A late success of a payment that was released, whose amount was refunded,
// is counted again before it is stored; if that fails, it is not stored (ErrNotReserved). That holds also after a
// takeover, whose owner may have died before it counted.
//
// A write of the change may be stored although its response was lost and another write came first. The change then
// finds nothing to do, and the amount is refunded all the same: a second refund does nothing. A payment may also be
// taken over and released again between the count and its write; it is then counted once more.
func (c *Counter) StoreChange(
	ctx context.Context, store StoreFunc, change func(*ledger.Entry) ledger.Transition,
) (StoredChange, error) {
	guarded := guardedChange{change: change, counted: -1}
	for range maxRevivals {
		guarded.isUncounted = false
		updated, err := store(guarded.apply)
		if err != nil {
			return StoredChange{}, err
		}
		if !guarded.isUncounted {
			stored := StoredChange{Before: guarded.before, Entry: updated}
			if guarded.sent || guarded.counted >= 0 {
				stored.RefundErr = c.Refund(ctx, updated)
			}
			return stored, nil
		}
		// The operator has applied the payment, so the amount is never refused.
		released := guarded.before
		if err := c.reserve(ctx, released, released.Version+1, unlimited); err != nil {
			return StoredChange{}, logsafe.Errorf("%w: %w", ErrNotReserved, err)
		}
		guarded.counted = released.Version
	}
	return StoredChange{}, logsafe.Errorf("%w: it is released again and again", ErrNotReserved)
}

// guardedChange is a change that does not apply a late success before its amount is counted.
type guardedChange struct {
	change      func(*ledger.Entry) ledger.Transition
	before      *ledger.Entry // the entry to which it was applied last
	isUncounted bool          // its last application was a late success whose amount is not counted
	counted     int64         // the version for which the amount was counted again, -1 for none
	sent        bool          // a write of the change was sent: it may be stored although another write came first
}

// apply is the change for a StoreFunc.
func (g *guardedChange) apply(e *ledger.Entry) ledger.Transition {
	g.before = e.Clone()
	made := g.change(e)
	changed := made != ledger.NoTransition
	isLateSuccess := changed && e.Amount.CountsDaily && mayBeUncounted(g.before) && !mayBeUncounted(e)
	g.isUncounted = isLateSuccess && g.before.Version != g.counted
	stores := changed && !g.isUncounted
	g.sent = g.sent || stores
	return made.If(stores)
}

// mayBeUncounted is true if an operator may have applied the entry although its amount is not counted. Such an entry is
// released, or was released before and has no final status since.
func mayBeUncounted(e *ledger.Entry) bool {
	return e.NotApplied() || e.ReleasedBefore && !e.StatusFinal()
}
