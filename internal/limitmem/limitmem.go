// Package limitmem keeps merchants' limits in memory: the same contract as the table, and on demand the faults that a
// table has. It is for tests and simulations, and never ships.
package limitmem

import (
	"context"
	"errors"
	"strings"
	"sync"

	"mobilegateway/shared/limit"
)

// Fault is what happens to one call.
type Fault int

// The faults of a call.
const (
	None         Fault = iota
	Error              // nothing was applied
	LostResponse       // it was applied, and nobody is told
	Conflict           // another transfer is under way; of a rate: the item's partition is full
)

// ErrInjected is what a faulty call gives.
var ErrInjected = errors.New("limitmem: no answer from the table")

// Store holds rates, days and marks. The zero value is empty and ready; any number of goroutines may use it.
type Store struct {
	mutex        sync.Mutex
	fullAt       map[string]int64
	sums         map[string]int64
	counted      map[string]limit.CountedAmount
	nextFault    func() Fault
	rateWrites   map[string]int // by merchant
	amountWrites int            // transfers
}

var (
	_ limit.RateStore   = (*Store)(nil)
	_ limit.AmountStore = (*Store)(nil)
)

// SetFaults has a function decide about every later call; nil ends that.
func (s *Store) SetFaults(inject func() Fault) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.nextFault = inject
}

// RateWrites is how many writes were tried on a merchant's rate; Transfers how many on all amounts.
func (s *Store) RateWrites(merchantID string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.rateWrites[merchantID]
}

// AmountWrites is how many transfers were tried.
func (s *Store) AmountWrites() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.amountWrites
}

// Sum is what all days of a merchant and currency have counted.
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

// drawFault asks for the fault of a call.
func (s *Store) drawFault() Fault {
	if s.nextFault == nil {
		return None
	}
	return s.nextFault()
}

// UpdateRate implements limit.RateStore.
func (s *Store) UpdateRate(ctx context.Context, merchantID string, m limit.RateUpdate) (int64, bool, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.fullAt == nil {
		s.fullAt, s.rateWrites = map[string]int64{}, map[string]int{}
	}
	s.rateWrites[merchantID]++
	injected := s.drawFault()
	switch {
	case ctx.Err() != nil:
		return 0, false, ctx.Err()
	case injected == Error:
		return 0, false, ErrInjected
	case injected == Conflict:
		return 0, false, limit.ErrThrottled
	}
	stored, exists := s.fullAt[merchantID]
	if exists && (stored < m.Min || stored > m.Max) || !exists && !m.AllowAbsent {
		return stored, false, nil
	}
	if m.Set == 0 {
		m.Set = stored + m.Add
	}
	s.fullAt[merchantID] = m.Set
	if injected == LostResponse {
		return 0, false, ErrInjected
	}
	return m.Set, true, nil
}

// Adjust implements limit.AmountStore.
func (s *Store) Adjust(ctx context.Context, t limit.Adjustment) (limit.AdjustmentResult, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.sums == nil {
		s.sums, s.counted = map[string]int64{}, map[string]limit.CountedAmount{}
	}
	s.amountWrites++
	injected := s.drawFault()
	switch {
	case ctx.Err() != nil:
		return limit.AdjustmentResult{}, ctx.Err()
	case injected == Error:
		return limit.AdjustmentResult{}, ErrInjected
	case injected == Conflict:
		return limit.AdjustmentResult{}, limit.ErrConflict
	}
	result := s.apply(t)
	if injected == LostResponse {
		return limit.AdjustmentResult{}, ErrInjected
	}
	return result, nil
}

// apply makes a transfer whose conditions hold.
func (s *Store) apply(t limit.Adjustment) limit.AdjustmentResult {
	day, key := t.MerchantID+"#"+t.Currency+"#"+t.Day, t.Day+"#"+t.TransactionKey
	existing, found := s.counted[key]
	if existing.Amount != t.OldAmount || existing.Fence > t.Fence || !found && t.OldAmount != 0 {
		return limit.AdjustmentResult{Existing: &existing}
	}
	sum, delta := s.sums[day], t.NewAmount-t.OldAmount
	if delta > 0 && sum > t.MaxSumBefore || delta < 0 && sum < -delta {
		return limit.AdjustmentResult{DaySum: sum}
	}
	s.counted[key] = limit.CountedAmount{Amount: t.NewAmount, Fence: t.Fence}
	if delta != 0 {
		s.sums[day] = sum + delta
	}
	return limit.AdjustmentResult{Applied: true}
}
