// Package dailyamount counts the money of each merchant by UTC day and currency, and keeps it within the limit of the
// merchant's profile (decision "merchant-limits"). Only this package reserves, refunds and revives amounts.
//
// It does not know HTTP and does not store entries; package limit/dynamo keeps its items. Its invariant: the sum of a
// day is never less than the amount that operators may have applied on that day.
package dailyamount

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/money"
)

const (
	// maxAttempts bounds the attempts of one adjustment: others of the same merchant may be in progress.
	maxAttempts = 8
	// minBackoff is the wait before the second attempt. It doubles before each further one, up to maxBackoff. Each
	// wait is jittered by ±50 % so that colliding requests spread out.
	minBackoff = 10 * time.Millisecond
	maxBackoff = 160 * time.Millisecond
	// gracePeriod is how long after its end amounts of a day are still refunded, because clocks differ.
	gracePeriod = time.Hour
	// retention is how long after its end the items of a day are kept.
	retention = 48 * time.Hour
	// unlimited is the limit of an amount that is counted and never refused.
	unlimited = math.MaxInt64
)

var (
	errTooManyConflicts = logsafe.New("daily amount: too many adjustments at once")
	errSuperseded       = logsafe.New("daily amount: a later attempt has counted this transaction")
)

// OverLimitError reports an amount that does not fit into the rest of the day. Remaining is that rest, as money.Format
// writes it.
type OverLimitError struct{ Remaining string }

// Error describes the refusal, without the amount.
func (o *OverLimitError) Error() string { return "daily amount: over the limit of the day" }

// Counter counts the amounts of merchants that have a limit. It has no state and is safe for concurrent use.
type Counter struct {
	Store Store
	Now   func() time.Time
	Rand  io.Reader
	// Sleep waits, or returns the context's error.
	Sleep func(ctx context.Context, wait time.Duration) error
}

// Reserve counts the amount of a reservation, before its operator is called. Repeated calls count it once. An entry
// that does not count against a limit costs nothing; one that does costs one transaction of two small items, and one
// more small write on a repeat. OverLimitError: the amount does not fit and is not counted. After any other error it
// may or may not be counted.
//
// An entry that was ever unknown is counted and never refused: a refusal would claim that it was not applied
// (decision "unknown-sticks").
func (c *Counter) Reserve(ctx context.Context, profile *merchant.Profile, reservation *ledger.Entry) error {
	if !reservation.Amount.CountsDaily {
		return nil
	}
	maxSum, limited := profile.DailyAmounts[reservation.Amount.Currency]
	if !limited || reservation.EverUnknown {
		maxSum = unlimited
	}
	return c.reserve(ctx, reservation, reservation.Version, maxSum)
}

// reserve counts an amount on the day on which the entry was first sent (SentAt). After that day it is counted there
// too, and never refused. version is the entry's version on which the caller acts, or which it is about to store: a
// refund by an earlier version has no effect afterwards.
func (c *Counter) reserve(ctx context.Context, e *ledger.Entry, version, maxSum int64) error {
	adjustment, dayOpen := c.newAdjustment(e, version)
	switch {
	case !c.Now().Before(adjustment.ExpireAt):
		return nil // the table has deleted the day
	case !dayOpen:
		maxSum = unlimited
	}
	adjustment.NewAmount = e.Amount.Minor
	result, err := c.adjust(ctx, adjustment, maxSum)
	switch {
	case err != nil || result.Applied:
		return err
	case result.Existing != nil:
		return errSuperseded
	default:
		return &OverLimitError{Remaining: money.Format(max(0, maxSum-result.DaySum), e.Amount.Exponent)}
	}
}

// Refund takes the amount of an entry out of its day, if the entry was certainly not applied and its amount is counted.
// It does nothing for any other entry, and nothing if a later version has counted the amount since. Repeated calls are
// safe. After an error the amount may still be counted. It costs one transaction of two small items.
func (c *Counter) Refund(ctx context.Context, e *ledger.Entry) error {
	if !e.Amount.CountsDaily || !e.NotApplied() {
		return nil
	}
	return c.refund(ctx, e)
}

// RefundMoved takes the amount of a reservation out of its day, if its entry counts on a later day by now. Only a send
// after a release moves an entry: nothing that was sent on the earlier day was applied. Otherwise it does nothing.
func (c *Counter) RefundMoved(ctx context.Context, reservation, updated *ledger.Entry) error {
	dayOf := func(e *ledger.Entry) time.Time { return e.SentAt.UTC().Truncate(24 * time.Hour) }
	if !reservation.Amount.CountsDaily || !dayOf(reservation).Before(dayOf(updated)) {
		return nil
	}
	earlier := updated.Clone()
	earlier.SentAt = reservation.SentAt
	return c.refund(ctx, earlier)
}

// refund takes an amount out of its day, if it is counted and no later version has counted it since.
func (c *Counter) refund(ctx context.Context, e *ledger.Entry) error {
	adjustment, dayOpen := c.newAdjustment(e, e.Version)
	if !dayOpen {
		return nil
	}
	adjustment.OldAmount = e.Amount.Minor // the likely one; without it only the fence is written
	_, err := c.adjust(ctx, adjustment, unlimited)
	return err
}

// newAdjustment begins an adjustment of an entry's amount. dayOpen is false if the day of the entry is over.
func (c *Counter) newAdjustment(e *ledger.Entry, version int64) (a Adjustment, dayOpen bool) {
	sent := e.SentAt.UTC()
	end := time.Date(sent.Year(), sent.Month(), sent.Day()+1, 0, 0, 0, 0, time.UTC)
	return Adjustment{
		Key: Key{
			MerchantID: e.Merchant.ID, Currency: e.Amount.Currency,
			Day: sent.Format(time.DateOnly), TransactionKey: e.Key.String(),
		},
		Fence: version, ExpireAt: end.Add(retention),
	}, c.Now().Before(end.Add(gracePeriod))
}

// adjust tries an adjustment until it is applied, has nothing left to do, or cannot be applied. The result says why
// not.
func (c *Counter) adjust(ctx context.Context, a Adjustment, maxSum int64) (AdjustmentResult, error) {
	for attempt := range maxAttempts {
		a.MaxSumBefore = unlimited
		if maxSum != unlimited {
			a.MaxSumBefore = maxSum - (a.NewAmount - a.OldAmount)
		}
		result, err := c.Store.Adjust(ctx, a)
		switch {
		case errors.Is(err, ErrConflict):
			if err := c.backOff(ctx, attempt); err != nil {
				return AdjustmentResult{}, err
			}
		case err != nil || result.Applied || result.Existing == nil || result.Existing.Fence > a.Fence:
			return result, err
		default: // also 0 for an amount that is not counted: the fence keeps a delayed reservation out
			a.OldAmount = result.Existing.Amount
		}
	}
	return AdjustmentResult{}, errTooManyConflicts
}

// backOff waits after a conflict. attempt counts from 0.
func (c *Counter) backOff(ctx context.Context, attempt int) error {
	var random [2]byte
	if _, err := io.ReadFull(c.Rand, random[:]); err != nil {
		return logsafe.Errorf("daily amount: drawing a wait: %w", err)
	}
	wait := min(minBackoff<<attempt, maxBackoff)
	return c.Sleep(ctx, wait/2+wait*time.Duration(binary.BigEndian.Uint16(random[:]))/math.MaxUint16)
}
