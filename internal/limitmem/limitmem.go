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
	None       Fault = iota
	Error            // nothing was applied
	LostAnswer       // it was applied, and nobody is told
	Conflict         // another transfer is under way; of a rate: the item's partition is full
)

// ErrInjected is what a faulty call gives.
var ErrInjected = errors.New("limitmem: no answer from the table")

// Store holds rates, days and marks. The zero value is empty and ready; any number of goroutines may use it.
type Store struct {
	mutex  sync.Mutex
	full   map[string]int64
	sums   map[string]int64
	marks  map[string]limit.Mark
	inject func() Fault
	moves  map[string]int // by merchant
	writes int            // transfers
}

var (
	_ limit.RateStore   = (*Store)(nil)
	_ limit.AmountStore = (*Store)(nil)
)

// SetFaults has a function decide about every later call; nil ends that.
func (s *Store) SetFaults(inject func() Fault) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.inject = inject
}

// Moves is how many writes were tried on a merchant's rate; Transfers how many on all amounts.
func (s *Store) Moves(merchantID string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.moves[merchantID]
}

// Transfers is how many transfers were tried.
func (s *Store) Transfers() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.writes
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

// fault asks for the fault of a call.
func (s *Store) fault() Fault {
	if s.inject == nil {
		return None
	}
	return s.inject()
}

// Move implements limit.RateStore.
func (s *Store) Move(ctx context.Context, merchantID string, m limit.Move) (int64, bool, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.full == nil {
		s.full, s.moves = map[string]int64{}, map[string]int{}
	}
	s.moves[merchantID]++
	how := s.fault()
	switch {
	case ctx.Err() != nil:
		return 0, false, ctx.Err()
	case how == Error:
		return 0, false, ErrInjected
	case how == Conflict:
		return 0, false, limit.ErrBusy
	}
	stored, there := s.full[merchantID]
	if there && (stored < m.Least || stored > m.Most) || !there && !m.Absent {
		return stored, false, nil
	}
	if m.Set == 0 {
		m.Set = stored + m.Add
	}
	s.full[merchantID] = m.Set
	if how == LostAnswer {
		return 0, false, ErrInjected
	}
	return m.Set, true, nil
}

// Transfer implements limit.AmountStore.
func (s *Store) Transfer(ctx context.Context, t limit.Transfer) (limit.Result, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.sums == nil {
		s.sums, s.marks = map[string]int64{}, map[string]limit.Mark{}
	}
	s.writes++
	how := s.fault()
	switch {
	case ctx.Err() != nil:
		return limit.Result{}, ctx.Err()
	case how == Error:
		return limit.Result{}, ErrInjected
	case how == Conflict:
		return limit.Result{}, limit.ErrConflict
	}
	result := s.apply(t)
	if how == LostAnswer {
		return limit.Result{}, ErrInjected
	}
	return result, nil
}

// apply makes a transfer whose conditions hold.
func (s *Store) apply(t limit.Transfer) limit.Result {
	day, key := t.MerchantID+"#"+t.Currency+"#"+t.Day, t.Day+"#"+t.Key
	mark, marked := s.marks[key]
	if mark.Amount != t.From || mark.Fence > t.Fence || !marked && t.From != 0 {
		return limit.Result{Mark: &mark}
	}
	sum, by := s.sums[day], t.To-t.From
	if by > 0 && sum > t.Most || by < 0 && sum < -by {
		return limit.Result{Sum: sum}
	}
	s.marks[key] = limit.Mark{Amount: t.To, Fence: t.Fence}
	if by != 0 {
		s.sums[day] = sum + by
	}
	return limit.Result{Made: true}
}
