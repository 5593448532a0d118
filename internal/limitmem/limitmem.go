// Package limitmem keeps merchants' limits in memory under the contract of the table, with fault injection. It is for
// tests and simulations.
package limitmem

import (
	"context"
	"errors"
	"strings"
	"sync"

	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/limit"
)

// Fault is an injected fault of one call.
type Fault int

// The faults of a call.
const (
	None         Fault = iota
	Error              // nothing was applied
	LostResponse       // it was applied, and the caller gets an error
	Conflict           // another adjustment is in progress; of a rate: the item's partition is full
)

// ErrInjected is the error of a call with an injected fault.
var ErrInjected = errors.New("limitmem: injected fault: no response from the table")

// Store keeps rates, the sums of days, and counted amounts. The zero value is empty and ready for use. It is safe for
// concurrent use.
type Store struct {
	mutex        sync.Mutex
	fullAt       map[string]int64
	sums         map[string]int64
	counted      map[string]dailyamount.CountedAmount
	nextFault    func() Fault
	rateWrites   map[string]int // by merchant
	amountWrites int
}

var (
	_ limit.RateStore   = (*Store)(nil)
	_ dailyamount.Store = (*Store)(nil)
)

// SetFaults has a function decide the fault of every later call; nil ends the injection.
func (s *Store) SetFaults(inject func() Fault) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.nextFault = inject
}

// RateWrites counts the attempted writes of a merchant's rate.
func (s *Store) RateWrites(merchantID string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.rateWrites[merchantID]
}

// AmountWrites counts the attempted adjustments of all merchants.
func (s *Store) AmountWrites() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.amountWrites
}

// Sum adds up all days of a merchant and currency.
func (s *Store) Sum(merchantID, currency string) int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	total := int64(0)
	for key, sum := range s.sums {
		if strings.HasPrefix(key, merchantID+"#"+currency+"#") {
			total += sum
		}
	}
	return total
}

// call runs one call under the lock, with its injected fault. count records the attempt; conflict is the error of the
// fault Conflict.
func (s *Store) call(ctx context.Context, count func(), conflict error, apply func()) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.counted == nil {
		s.fullAt, s.sums, s.rateWrites = map[string]int64{}, map[string]int64{}, map[string]int{}
		s.counted = map[string]dailyamount.CountedAmount{}
	}
	count()
	injected := None
	if s.nextFault != nil {
		injected = s.nextFault()
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case injected == Error:
		return ErrInjected
	case injected == Conflict:
		return conflict
	}
	apply()
	if injected == LostResponse {
		return ErrInjected
	}
	return nil
}

// UpdateRate implements limit.RateStore.
func (s *Store) UpdateRate(
	ctx context.Context, merchantID string, u limit.RateUpdate,
) (stored int64, updated bool, err error) {
	err = s.call(ctx, func() { s.rateWrites[merchantID]++ }, limit.ErrThrottled, func() {
		stored, updated = s.updateRate(merchantID, u)
	})
	if err != nil {
		return 0, false, err
	}
	return stored, updated, nil
}

// updateRate writes a rate if the condition is true.
func (s *Store) updateRate(merchantID string, u limit.RateUpdate) (stored int64, updated bool) {
	stored, exists := s.fullAt[merchantID]
	if exists && (stored < u.Min || stored > u.Max) || !exists && !u.AllowAbsent {
		return stored, false
	}
	if u.Set == 0 {
		u.Set = stored + u.Add
	}
	s.fullAt[merchantID] = u.Set
	return u.Set, true
}

// Adjust implements dailyamount.Store.
func (s *Store) Adjust(
	ctx context.Context, a dailyamount.Adjustment,
) (result dailyamount.AdjustmentResult, err error) {
	err = s.call(ctx, func() { s.amountWrites++ }, dailyamount.ErrConflict, func() { result = s.adjust(a) })
	if err != nil {
		return dailyamount.AdjustmentResult{}, err
	}
	return result, nil
}

// adjust applies an adjustment if its conditions are true.
func (s *Store) adjust(a dailyamount.Adjustment) dailyamount.AdjustmentResult {
	day, key := a.MerchantID+"#"+a.Currency+"#"+a.Day, a.Day+"#"+a.TransactionKey
	existing, found := s.counted[key]
	if existing.Amount != a.OldAmount || existing.Fence > a.Fence || !found && a.OldAmount != 0 {
		return dailyamount.AdjustmentResult{Existing: &existing}
	}
	sum, delta := s.sums[day], a.NewAmount-a.OldAmount
	if delta > 0 && sum > a.MaxSumBefore || delta < 0 && sum < -delta {
		return dailyamount.AdjustmentResult{DaySum: sum}
	}
	s.counted[key] = dailyamount.CountedAmount{Amount: a.NewAmount, Fence: a.Fence}
	if delta != 0 {
		s.sums[day] = sum + delta
	}
	return dailyamount.AdjustmentResult{Applied: true}
}
