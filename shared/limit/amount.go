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
	// amountTries is how often a transfer is tried: others of the same merchant may be under way at the same moment.
	amountTries = 8
	// firstPause is the wait before the second try, doubled before each further one up to longestPause; each is drawn from
	// its half to its one and a half, so that requests that met do not meet again.
	firstPause   = 10 * time.Millisecond
	longestPause = 160 * time.Millisecond
	// daySlack is how long after its end a day is still counted, for clocks that differ. Nobody asks for it after that.
	daySlack = time.Hour
	// dayLife is how long after its end a day's items are kept.
	dayLife = 48 * time.Hour
)

// Unlimited is the limit of what is counted and never refused.
const Unlimited = math.MaxInt64

// ErrConflict says that another transfer of the same item was under way: nothing was changed, and the same may be tried
// again.
var ErrConflict = errors.New("limit: another transfer is under way")

var (
	errContended  = errors.New("limit: too many transfers at once")
	errSuperseded = errors.New("limit: a later attempt has counted this transaction")
)

// Over says that an amount does not fit into what is left of the day: Left, in minor units.
type Over struct{ Left int64 }

// Error says so, without the amount.
func (o *Over) Error() string { return "limit: over the amount of the day" }

// Spend names what a transaction's amount is counted against, and the transaction: one item each.
type Spend struct {
	MerchantID string
	Currency   string
	Day        string // UTC, 2006-01-02
	Key        string // the transaction's key as the ledger stores it
}

// Mark is what is stored of one transaction on one day: how much of it the day has counted, and the version of the entry
// that said so last.
type Mark struct {
	Amount int64 // minor units; 0 where it is not counted
	Fence  int64
}

// Transfer makes a transaction's mark hold another amount, and moves the day's sum by the difference: both or neither.
type Transfer struct {
	Spend
	// From is the amount that the mark must hold, 0 for none or no mark; To is what it is to hold.
	From, To int64
	// Fence must not be less than the mark's, and becomes it.
	Fence int64
	// Most is the most that the day's sum may be before. Where To is less than From it does not count.
	Most int64
	// ExpireAt is when the table may drop both items.
	ExpireAt time.Time
}

// Result is what became of a transfer. Where it was not made, Mark is the mark that was in the way, or nil and Sum is the
// day's sum that was.
type Result struct {
	Made bool
	Mark *Mark
	Sum  int64
}

// AmountStore keeps the days' sums and the transactions' marks.
type AmountStore interface {
	// Transfer makes a transfer if its conditions hold. A transfer that was made and whose answer was lost may be seen as a
	// mark in the way that holds To. ErrConflict: nothing was changed; another error: nothing is known.
	Transfer(ctx context.Context, t Transfer) (Result, error)
}

// Counter counts merchants' money by day; *Amounts is the one that ships. It is asked only about entries of merchants that
// have a limit.
type Counter interface {
	Count(ctx context.Context, e *ledger.Entry, version, limit int64) error
	GiveBack(ctx context.Context, e *ledger.Entry) error
}

var _ Counter = (*Amounts)(nil)

// Amounts counts merchants' money by day and currency. It holds no state; any number of goroutines may use it.
type Amounts struct {
	Store AmountStore
	Now   func() time.Time
	Rand  io.Reader
	// Pause waits, or gives the context's error.
	Pause func(ctx context.Context, wait time.Duration) error
}

// Count counts an entry's amount against the limit of the day on which it was first sent, unless it is counted already:
// once, however often it is asked. version is the entry's that the caller acts upon, or is about to store; what an
// earlier one gives back afterwards no longer counts. *Over: it does not fit, and is not counted. Another error means
// that it may or may not be counted. One transaction of two small items; another small write on a repeat.
func (a *Amounts) Count(ctx context.Context, e *ledger.Entry, version, limit int64) error {
	t, open := a.transfer(e, version)
	if !open {
		return nil
	}
	t.To = e.Minor
	result, err := a.settle(ctx, t, limit)
	if err == nil && !result.Made {
		if result.Mark != nil {
			return errSuperseded
		}
		return &Over{Left: max(0, limit-result.Sum)}
	}
	return err
}

// GiveBack takes an entry's amount out of the day again, if it is counted and no later version has counted it since. It
// may be asked any number of times. An error means that it may still be counted. One transaction of two small items.
func (a *Amounts) GiveBack(ctx context.Context, e *ledger.Entry) error {
	t, open := a.transfer(e, e.Version)
	if !open {
		return nil
	}
	t.From = e.Minor // in all likelihood
	_, err := a.settle(ctx, t, Unlimited)
	return err
}

// transfer begins a transfer of an entry's amount; open is false where its day is over.
func (a *Amounts) transfer(e *ledger.Entry, version int64) (t Transfer, open bool) {
	sent := e.SentAt.UTC()
	end := time.Date(sent.Year(), sent.Month(), sent.Day()+1, 0, 0, 0, 0, time.UTC)
	return Transfer{
		Spend: Spend{MerchantID: e.MerchantID, Currency: e.Currency, Day: sent.Format(time.DateOnly), Key: e.Key.String()},
		Fence: version, ExpireAt: end.Add(dayLife),
	}, a.Now().Before(end.Add(daySlack))
}

// settle tries a transfer until it is made, has nothing to do any more, or cannot be made: then the result says why.
func (a *Amounts) settle(ctx context.Context, t Transfer, limit int64) (Result, error) {
	for try := range amountTries {
		t.Most = Unlimited
		if limit != Unlimited {
			t.Most = limit - (t.To - t.From)
		}
		result, err := a.Store.Transfer(ctx, t)
		switch {
		case errors.Is(err, ErrConflict):
			if err := a.pause(ctx, try); err != nil {
				return Result{}, err
			}
		case err != nil || result.Made || result.Mark == nil || result.Mark.Fence > t.Fence:
			return result, err
		case t.To == 0 && result.Mark.Amount == 0:
			return Result{Made: true}, nil
		default:
			t.From = result.Mark.Amount
		}
	}
	return Result{}, errContended
}

// pause waits after a try, from 0, that met another.
func (a *Amounts) pause(ctx context.Context, try int) error {
	var random [2]byte
	if _, err := io.ReadFull(a.Rand, random[:]); err != nil {
		return fmt.Errorf("limit: drawing a pause: %w", err)
	}
	wait := min(firstPause<<try, longestPause)
	return a.Pause(ctx, wait/2+wait*time.Duration(binary.BigEndian.Uint16(random[:]))/math.MaxUint16)
}
