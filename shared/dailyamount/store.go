package dailyamount

import (
	"context"
	"time"

	"mobilegateway/shared/logsafe"
)

// ErrConflict is returned by a Store while another adjustment of the same item is in progress. Nothing was changed, and
// the same adjustment may be tried again.
var ErrConflict = logsafe.New("daily amount: another adjustment is in progress")

// Key identifies a merchant's day in one currency, and the transaction that is counted in it.
type Key struct {
	MerchantID     string
	Currency       string
	Day            string // UTC, 2006-01-02
	TransactionKey string // the entry's key as the ledger stores it
}

// CountedAmount is the stored record of one transaction on one day.
type CountedAmount struct {
	Amount int64 // minor units; 0 if the transaction is not counted
	Fence  int64 // the version of the entry that wrote the record last
}

// Adjustment changes a transaction's counted amount, and moves the day's sum by the difference: both or neither.
type Adjustment struct {
	Key
	// OldAmount is the amount that the record must have. 0 also matches a missing record.
	OldAmount, NewAmount int64
	// Fence must not be less than the record's. It replaces the record's.
	Fence int64
	// MaxSumBefore is the highest sum of the day at which the amount may still grow. It does not limit a decrease.
	MaxSumBefore int64
	// ExpireAt is the time after which the table may delete both items.
	ExpireAt time.Time
}

// AdjustmentResult is the result of an adjustment. If it was not applied, Existing is the record that prevented it. If
// Existing is nil too, DaySum is the sum that prevented it.
type AdjustmentResult struct {
	Applied  bool
	Existing *CountedAmount
	DaySum   int64
}

// Store keeps the sums of the days and the counted amounts of the transactions.
type Store interface {
	// Adjust applies an adjustment if its conditions are true. If the response of an applied adjustment was lost, the
	// retry may find a record that already has NewAmount. After ErrConflict nothing was changed. After any other error
	// the adjustment may or may not be applied.
	Adjust(ctx context.Context, a Adjustment) (AdjustmentResult, error)
}
