// Package limittest is the suite that every store of limits must pass. It ships with nothing.
package limittest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"mobilegateway/shared/limit"
)

// Store is what package limit needs of a store.
type Store interface {
	limit.RateStore
	limit.AmountStore
}

// Run runs the suite. Each case gets an empty store from open.
func Run(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	cases := map[string]func(*testing.T, Store){
		"a rate":                        checkRate,
		"a rate's other merchant":       checkRateOfOtherMerchant,
		"a transfer":                    checkAdjust,
		"what is left":                  checkRemaining,
		"marks":                         checkExistingAmounts,
		"fences":                        checkFencing,
		"other days and currencies":     checkOtherDaysAndCurrencies,
		"parallel transfers":            checkParallelAdjustments,
		"parallel transfers of one key": checkParallelSameKey,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

// farFuture is when the suite's items expire: far ahead, as a table drops what has expired.
func farFuture() time.Time { return time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC) }

func checkRate(t *testing.T, s Store) {
	steps := []struct {
		name   string
		move   limit.RateUpdate
		stored int64
		moved  bool
	}{
		{"an empty one is not between", limit.RateUpdate{Min: 0, Max: 100, Set: 5}, 0, false},
		{"an empty one may be absent", limit.RateUpdate{Max: 100, AllowAbsent: true, Set: 1_790_000_000_000_000}, 1_790_000_000_000_000, true},
		{"and is there then", limit.RateUpdate{Max: 100, AllowAbsent: true, Set: 7}, 1_790_000_000_000_000, false},
		{"below", limit.RateUpdate{Min: 1_790_000_000_000_001, Max: math.MaxInt64, Set: 7}, 1_790_000_000_000_000, false},
		{"at both ends", limit.RateUpdate{Min: 1_790_000_000_000_000, Max: 1_790_000_000_000_000, Add: 200_000}, 1_790_000_000_200_000, true},
		{"set back", limit.RateUpdate{Min: 0, Max: math.MaxInt64, Set: 10}, 10, true},
	}
	for _, step := range steps {
		step.move.ExpireAt = farFuture()
		stored, updated, err := s.UpdateRate(context.Background(), "m1", step.move)
		if err != nil || stored != step.stored || updated != step.moved {
			t.Errorf("%s: %d, %v, %v", step.name, stored, updated, err)
		}
	}
}

func checkRateOfOtherMerchant(t *testing.T, s Store) {
	for _, id := range []string{"m1", "m2"} {
		stored, updated, err := s.UpdateRate(context.Background(), id, limit.RateUpdate{AllowAbsent: true, Set: 5, ExpireAt: farFuture()})
		if err != nil || stored != 5 || !updated {
			t.Errorf("%s: %d, %v, %v", id, stored, updated, err)
		}
	}
}

// newAdjustment is a transfer of a key of one merchant's day.
func newAdjustment(key string, from, to, fence, maxSumBefore int64) limit.Adjustment {
	return limit.Adjustment{
		AmountKey: limit.AmountKey{MerchantID: "m1", Currency: "XOF", Day: "2026-11-21", TransactionKey: key},
		OldAmount: from, NewAmount: to, Fence: fence, MaxSumBefore: maxSumBefore, ExpireAt: farFuture(),
	}
}

// assertAdjust makes a transfer and compares the result: "made", "sum N" or "mark AMOUNT FENCE".
func assertAdjust(t *testing.T, s Store, adjustment limit.Adjustment, result string) {
	t.Helper()
	got, err := s.Adjust(context.Background(), adjustment)
	text := fmt.Sprintf("sum %d", got.DaySum)
	switch {
	case err != nil:
		text = err.Error()
	case got.Applied:
		text = "made"
	case got.Existing != nil:
		text = fmt.Sprintf("mark %d %d", got.Existing.Amount, got.Existing.Fence)
	}
	if text != result {
		t.Errorf("%+v: %s, want %s", adjustment, text, result)
	}
}

func checkAdjust(t *testing.T, s Store) {
	assertAdjust(t, s, newAdjustment("a", 0, 300, 1, 700), "made")
	assertAdjust(t, s, newAdjustment("a", 0, 300, 1, 700), "mark 300 1")
	assertAdjust(t, s, newAdjustment("a", 300, 0, 2, 0), "made")
	assertAdjust(t, s, newAdjustment("a", 300, 0, 2, 0), "mark 0 2")
	assertAdjust(t, s, newAdjustment("a", 0, 300, 3, 0), "made")
	assertAdjust(t, s, newAdjustment("a", 300, 500, 3, 300), "made")
	assertAdjust(t, s, newAdjustment("b", 0, 1, 1, 499), "sum 500")
}

func checkRemaining(t *testing.T, s Store) {
	assertAdjust(t, s, newAdjustment("a", 0, 300, 1, -1), "sum 0")
	assertAdjust(t, s, newAdjustment("a", 0, 300, 1, 0), "made")
	assertAdjust(t, s, newAdjustment("b", 0, 300, 1, 299), "sum 300")
	assertAdjust(t, s, newAdjustment("b", 0, 300, 1, -5), "sum 300")
	assertAdjust(t, s, newAdjustment("b", 0, 300, 1, 300), "made")
	assertAdjust(t, s, newAdjustment("c", 0, 300, 1, limit.Unlimited), "made")
	assertAdjust(t, s, newAdjustment("d", 0, 1, 1, 899), "sum 900")
}

func checkExistingAmounts(t *testing.T, s Store) {
	assertAdjust(t, s, newAdjustment("a", 300, 0, 5, 0), "mark 0 0")
	assertAdjust(t, s, newAdjustment("a", 300, 300, 5, 0), "mark 0 0")
	assertAdjust(t, s, newAdjustment("a", 0, 300, 5, -1), "sum 0")
	assertAdjust(t, s, newAdjustment("a", 300, 0, 5, 0), "mark 0 0")
	assertAdjust(t, s, newAdjustment("a", 0, 300, 5, 0), "made")
	assertAdjust(t, s, newAdjustment("b", 0, 300, 1, 0), "sum 300")
	assertAdjust(t, s, newAdjustment("a", 0, 300, 5, 0), "mark 300 5")
	assertAdjust(t, s, newAdjustment("a", 200, 0, 5, 0), "mark 300 5")
}

func checkFencing(t *testing.T, s Store) {
	assertAdjust(t, s, newAdjustment("a", 0, 300, 5, 0), "made")
	assertAdjust(t, s, newAdjustment("a", 300, 0, 4, 0), "mark 300 5")
	assertAdjust(t, s, newAdjustment("a", 300, 300, 4, 0), "mark 300 5")
	assertAdjust(t, s, newAdjustment("a", 300, 300, 7, 0), "made")
	assertAdjust(t, s, newAdjustment("a", 300, 0, 6, 0), "mark 300 7")
	assertAdjust(t, s, newAdjustment("a", 300, 0, 7, 0), "made")
	assertAdjust(t, s, newAdjustment("a", 0, 300, 6, 0), "mark 0 7")
	assertAdjust(t, s, newAdjustment("a", 0, 300, 8, 0), "made")
}

func checkOtherDaysAndCurrencies(t *testing.T, s Store) {
	assertAdjust(t, s, newAdjustment("a", 0, 300, 1, 0), "made")
	day, currency, merchant := newAdjustment("a", 0, 300, 1, 0), newAdjustment("b", 0, 300, 1, 0), newAdjustment("c", 0, 300, 1, 0)
	day.Day, currency.Currency, merchant.MerchantID = "2026-11-22", "XAF", "m2"
	assertAdjust(t, s, day, "made")
	assertAdjust(t, s, currency, "made")
	assertAdjust(t, s, merchant, "made")
}

// adjustUntilNoConflict runs a transfer until no other is in its way, and tells whether it was made.
func adjustUntilNoConflict(t *testing.T, s Store, adjustment limit.Adjustment) bool {
	for {
		result, err := s.Adjust(context.Background(), adjustment)
		if errors.Is(err, limit.ErrConflict) {
			continue
		}
		if err != nil {
			t.Error(err)
		}
		return result.Applied
	}
}

// checkParallelAdjustments: exactly as many fit as the limit says, however they race.
func checkParallelAdjustments(t *testing.T, s Store) {
	var group sync.WaitGroup
	var mutex sync.Mutex
	applied := 0
	for i := range 20 {
		group.Go(func() {
			if adjustUntilNoConflict(t, s, newAdjustment(fmt.Sprint(i), 0, 100, 1, 700-100)) {
				mutex.Lock()
				applied++
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	if applied != 7 {
		t.Errorf("%d were counted, want 7", applied)
	}
	assertAdjust(t, s, newAdjustment("z", 0, 1, 1, 699), "sum 700")
}

// checkParallelSameKey: one transaction is counted once, however many count it.
func checkParallelSameKey(t *testing.T, s Store) {
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() { adjustUntilNoConflict(t, s, newAdjustment("a", 0, 100, 1, limit.Unlimited)) })
	}
	group.Wait()
	assertAdjust(t, s, newAdjustment("z", 0, 1, 1, 99), "sum 100")
}
