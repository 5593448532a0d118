package limit

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"mobilegateway/shared/ledger"
)

const (
	// maxAdjustAttempts is how often a transfer is tried: others of the same merchant may be under way at the same moment.
	maxAdjustAttempts = 8
	// minBackoff is the wait before the second try, doubled before each further one up to maxBackoff; each is drawn from
	// its half to its one and a half, so that requests that met do not meet again.
	minBackoff = 10 * time.Millisecond
	maxBackoff = 160 * time.Millisecond
	// dayGracePeriod is how long after its end a day is still counted, for clocks that differ. Nobody asks for it after that.
	dayGracePeriod = time.Hour
	// dayRetention is how long after its end a day's items are kept.
	dayRetention = 48 * time.Hour
)

// Unlimited is the limit of what is counted and never refused.
const Unlimited = math.MaxInt64

// ErrConflict says that another transfer of the same item was under way: nothing was changed, and the same may be tried
// again.
var ErrConflict = errors.New("limit: another transfer is under way")

var (
	errTooManyConflicts         = errors.New("limit: too many transfers at once")
	errSupersededByLaterAttempt = errors.New("limit: a later attempt has counted this transaction")
)

// OverLimitError says that an amount does not fit into what is left of the day: Left, in minor units.
type OverLimitError struct{ Remaining int64 }

// Error says so, without the amount.
func (o *OverLimitError) Error() string { return "limit: over the amount of the day" }

// AmountKey names what a transaction's amount is counted against, and the transaction: one item each.
type AmountKey struct {
	MerchantID     string
	Currency       string
	Day            string // UTC, 2006-01-02
	TransactionKey string // the transaction's key as the ledger stores it
}

// CountedAmount is what is stored of one transaction on one day: how much of it the day has counted, and the version of the entry
// that said so last.
type CountedAmount struct {
	Amount int64 // minor units; 0 where it is not counted
	Fence  int64
}

// Adjustment makes a transaction's mark hold another amount, and moves the day's sum by the difference: both or neither.
type Adjustment struct {
	AmountKey
	// OldAmount is the amount that the mark must hold, 0 for none or no mark; To is what it is to hold.
	OldAmount, NewAmount int64
	// Fence must not be less than the mark's, and becomes it.
	Fence int64
	// MaxSumBefore is the most that the day's sum may be before. Where To is less than From it does not count.
	MaxSumBefore int64
	// ExpireAt is when the table may drop both items.
	ExpireAt time.Time
}

// AdjustmentResult is what became of a transfer. Where it was not made, Mark is the mark that was in the way, or nil and Sum is the
// day's sum that was.
type AdjustmentResult struct {
	Applied  bool
	Existing *CountedAmount
	DaySum   int64
}

// AmountStore keeps the days' sums and the transactions' marks.
type AmountStore interface {
	// Adjust makes a transfer if its conditions hold. A transfer that was made and whose answer was lost may be seen as a
	// mark in the way that holds To. ErrConflict: nothing was changed; another error: nothing is known.
	Adjust(ctx context.Context, t Adjustment) (AdjustmentResult, error)
}

// AmountLimiter counts merchants' money by day; *Amounts is the one that ships. It is asked only about entries of merchants that
// have a limit.
type AmountLimiter interface {
	Reserve(ctx context.Context, e *ledger.Entry, version, limit int64) error
	Refund(ctx context.Context, e *ledger.Entry) error
}

var _ AmountLimiter = (*DailyAmounts)(nil)

// DailyAmounts counts merchants' money by day and currency. It holds no state; any number of goroutines may use it.
type DailyAmounts struct {
	Store AmountStore
	Now   func() time.Time
	Rand  io.Reader
	// Sleep waits, or gives the context's error.
	Sleep func(ctx context.Context, wait time.Duration) error
}

// Reserve counts an entry's amount against the limit of the day on which it was first sent, unless it is counted already:
// once, however often it is asked. version is the entry's that the caller acts upon, or is about to store; what an
// earlier one gives back afterwards no longer counts. *Over: it does not fit, and is not counted. Another error means
// that it may or may not be counted. One transaction of two small items; another small write on a repeat.
func (a *DailyAmounts) Reserve(ctx context.Context, e *ledger.Entry, version, limit int64) error {
	t, dayOpen := a.newAdjustment(e, version)
	if !dayOpen {
		return nil
	}
	t.NewAmount = e.AmountMinor
	result, err := a.adjust(ctx, t, limit)
	if err == nil && !result.Applied {
		if result.Existing != nil {
			return errSupersededByLaterAttempt
		}
		return &OverLimitError{Remaining: max(0, limit-result.DaySum)}
	}
	return err
}

// Refund takes an entry's amount out of the day again, if it is counted and no later version has counted it since. It
// may be asked any number of times. An error means that it may still be counted. One transaction of two small items.
func (a *DailyAmounts) Refund(ctx context.Context, e *ledger.Entry) error {
	t, dayOpen := a.newAdjustment(e, e.Version)
	if !dayOpen {
		return nil
	}
	t.OldAmount = e.AmountMinor // in all likelihood
	_, err := a.adjust(ctx, t, Unlimited)
	return err
}

// newAdjustment begins a transfer of an entry's amount; open is false where its day is over.
func (a *DailyAmounts) newAdjustment(e *ledger.Entry, version int64) (t Adjustment, dayOpen bool) {
	sent := e.SentAt.UTC()
	end := time.Date(sent.Year(), sent.Month(), sent.Day()+1, 0, 0, 0, 0, time.UTC)
	return Adjustment{
		AmountKey: AmountKey{MerchantID: e.MerchantID, Currency: e.Currency, Day: sent.Format(time.DateOnly), TransactionKey: e.Key.String()},
		Fence:     version, ExpireAt: end.Add(dayRetention),
	}, a.Now().Before(end.Add(dayGracePeriod))
}

// adjust tries a transfer until it is made, has nothing to do any more, or cannot be made: then the result says why.
func (a *DailyAmounts) adjust(ctx context.Context, t Adjustment, limit int64) (AdjustmentResult, error) {
	for attempt := range maxAdjustAttempts {
		t.MaxSumBefore = Unlimited
		if limit != Unlimited {
			t.MaxSumBefore = limit - (t.NewAmount - t.OldAmount)
		}
		result, err := a.Store.Adjust(ctx, t)
		switch {
		case errors.Is(err, ErrConflict):
			if err := a.backOff(ctx, attempt); err != nil {
				return AdjustmentResult{}, err
			}
		case err != nil || result.Applied || result.Existing == nil || result.Existing.Fence > t.Fence:
			return result, err
		case t.NewAmount == 0 && result.Existing.Amount == 0:
			return AdjustmentResult{Applied: true}, nil
		default:
			t.OldAmount = result.Existing.Amount
		}
	}
	return AdjustmentResult{}, errTooManyConflicts
}

// backOff waits after a try, from 0, that met another.
func (a *DailyAmounts) backOff(ctx context.Context, attempt int) error {
	var random [2]byte
	if _, err := io.ReadFull(a.Rand, random[:]); err != nil {
		return fmt.Errorf("limit: drawing a pause: %w", err)
	}
	wait := min(minBackoff<<attempt, maxBackoff)
	return a.Sleep(ctx, wait/2+wait*time.Duration(binary.BigEndian.Uint16(random[:]))/math.MaxUint16)
}
