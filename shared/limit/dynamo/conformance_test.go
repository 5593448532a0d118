package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/limit"
)

// limitStore is a store of rates and of daily amounts.
type limitStore interface {
	limit.RateStore
	dailyamount.Store
}

// TestStore runs the conformance suite on a DynamoDB.
func TestStore(t *testing.T) {
	checkConformance(t, func(t *testing.T) limitStore {
		store, _ := newStore(t)
		return store
	})
}

// TestStoreOfModel runs the suite on the model of the tables, as the tests of other packages use it.
func TestStoreOfModel(t *testing.T) {
	checkConformance(t, func(*testing.T) limitStore { return storetest.NewLimits() })
}

// checkConformance runs the suite. open returns an empty store for each case.
func checkConformance(t *testing.T, open func(t *testing.T) limitStore) {
	t.Helper()
	checks := map[string]func(*testing.T, limitStore){
		"a rate":                          checkRate,
		"a rate's other merchant":         checkRateOfOtherMerchant,
		"other days and currencies":       checkOtherDaysAndCurrencies,
		"parallel adjustments":            checkParallelAdjustments,
		"parallel adjustments of one key": checkParallelSameKey,
	}
	for name, check := range checks {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
	for name, steps := range adjustmentSteps() {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			for _, step := range steps {
				assertAdjust(t, s, step.adjustment, step.want)
			}
		})
	}
}

// farFuture is when the items of the suite expire, so that no table deletes them during a test.
func farFuture() time.Time { return time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC) }

func checkRate(t *testing.T, s limitStore) {
	const fullAt = 1_790_000_000_000_000
	steps := []struct {
		name    string
		update  limit.RateUpdate
		stored  int64
		updated bool
	}{
		{"a missing item is not between", limit.RateUpdate{Min: 0, Max: 100, Set: 5}, 0, false},
		{"a missing item is allowed", limit.RateUpdate{Max: 100, AllowAbsent: true, Set: fullAt}, fullAt, true},
		{"an item above is not", limit.RateUpdate{Max: 100, AllowAbsent: true, Set: 7}, fullAt, false},
		{"an item below is not", limit.RateUpdate{Min: fullAt + 1, Max: math.MaxInt64, Set: 7}, fullAt, false},
		{"both ends are included", limit.RateUpdate{Min: fullAt, Max: fullAt, Add: 200_000}, fullAt + 200_000, true},
		{"the time may decrease", limit.RateUpdate{Min: 0, Max: math.MaxInt64, Set: 10}, 10, true},
	}
	for _, step := range steps {
		assertUpdateRate(t, s, step.name, "m1", step.update, step.stored, step.updated)
	}
}

func checkRateOfOtherMerchant(t *testing.T, s limitStore) {
	for _, id := range []string{"m1", "m2"} {
		assertUpdateRate(t, s, "first write of "+id, id, limit.RateUpdate{AllowAbsent: true, Set: 5}, 5, true)
	}
}

func assertUpdateRate(
	t *testing.T, s limitStore, name, merchantID string, update limit.RateUpdate, wantStored int64, wantUpdated bool,
) {
	t.Helper()
	update.ExpireAt = farFuture()
	stored, updated, err := s.UpdateRate(context.Background(), merchantID, update)
	if err != nil || stored != wantStored || updated != wantUpdated {
		t.Errorf("%s: stored %d, updated %v, error %v; want %d, %v",
			name, stored, updated, err, wantStored, wantUpdated)
	}
}

// newAdjustment is an adjustment of one transaction in one merchant's day.
func newAdjustment(key string, oldAmount, newAmount, fence, maxSumBefore int64) dailyamount.Adjustment {
	return dailyamount.Adjustment{
		Key:       dailyamount.Key{MerchantID: "m1", Currency: "XOF", Day: "2026-11-21", TransactionKey: key},
		OldAmount: oldAmount, NewAmount: newAmount, Fence: fence, MaxSumBefore: maxSumBefore, ExpireAt: farFuture(),
	}
}

const applied = "applied"

// assertAdjust compares the result of an adjustment: "applied", "sum N" or "existing AMOUNT FENCE".
func assertAdjust(t *testing.T, s limitStore, adjustment dailyamount.Adjustment, want string) {
	t.Helper()
	result, err := s.Adjust(context.Background(), adjustment)
	got := fmt.Sprintf("sum %d", result.DaySum)
	switch {
	case err != nil:
		got = err.Error()
	case result.Applied:
		got = applied
	case result.Existing != nil:
		got = fmt.Sprintf("existing %d %d", result.Existing.Amount, result.Existing.Fence)
	}
	if got != want {
		t.Errorf("%+v: %s, want %s", adjustment, got, want)
	}
}

type adjustmentStep struct {
	adjustment dailyamount.Adjustment
	want       string
}

// adjustmentSteps are sequences of adjustments, each on an empty store.
func adjustmentSteps() map[string][]adjustmentStep {
	return map[string][]adjustmentStep{
		"an adjustment": {
			{newAdjustment("a", 0, 300, 1, 700), applied},
			{newAdjustment("a", 0, 300, 1, 700), "existing 300 1"},
			{newAdjustment("a", 300, 0, 2, 0), applied},
			{newAdjustment("a", 300, 0, 2, 0), "existing 0 2"},
			{newAdjustment("a", 0, 300, 3, 0), applied},
			{newAdjustment("a", 300, 500, 3, 300), applied},
			{newAdjustment("b", 0, 1, 1, 499), "sum 500"},
			{newAdjustment("a", 500, 400, 4, 0), applied},
			{newAdjustment("b", 0, 1, 1, 399), "sum 400"},
		},
		"the remaining amount": {
			{newAdjustment("a", 0, 300, 1, -1), "sum 0"},
			{newAdjustment("a", 0, 300, 1, 0), applied},
			{newAdjustment("b", 0, 300, 1, 299), "sum 300"},
			{newAdjustment("b", 0, 300, 1, -5), "sum 300"},
			{newAdjustment("b", 0, 300, 1, 300), applied},
			{newAdjustment("c", 0, 300, 1, math.MaxInt64), applied},
			{newAdjustment("d", 0, 1, 1, 899), "sum 900"},
		},
		"existing records": {
			{newAdjustment("a", 300, 0, 5, 0), "existing 0 0"},
			{newAdjustment("a", 300, 300, 5, 0), "existing 0 0"},
			{newAdjustment("a", 0, 300, 5, -1), "sum 0"},
			{newAdjustment("a", 300, 0, 5, 0), "existing 0 0"},
			{newAdjustment("a", 0, 300, 5, 0), applied},
			{newAdjustment("b", 0, 300, 1, 0), "sum 300"},
			{newAdjustment("a", 0, 300, 5, 0), "existing 300 5"},
			{newAdjustment("a", 200, 0, 5, 0), "existing 300 5"},
		},
		"fences": {
			{newAdjustment("a", 0, 300, 5, 0), applied},
			{newAdjustment("a", 300, 0, 4, 0), "existing 300 5"},
			{newAdjustment("a", 300, 300, 4, 0), "existing 300 5"},
			{newAdjustment("a", 300, 300, 7, 0), applied},
			{newAdjustment("a", 300, 0, 6, 0), "existing 300 7"},
			{newAdjustment("a", 300, 0, 7, 0), applied},
			{newAdjustment("a", 0, 300, 6, 0), "existing 0 7"},
			{newAdjustment("a", 0, 300, 8, 0), applied},
		},
	}
}

func checkOtherDaysAndCurrencies(t *testing.T, s limitStore) {
	assertAdjust(t, s, newAdjustment("a", 0, 300, 1, 0), applied)
	day, currency := newAdjustment("a", 0, 300, 1, 0), newAdjustment("b", 0, 300, 1, 0)
	merchant := newAdjustment("c", 0, 300, 1, 0)
	day.Day, currency.Currency, merchant.MerchantID = "2026-11-22", "XAF", "m2"
	for _, other := range []dailyamount.Adjustment{day, currency, merchant} {
		assertAdjust(t, s, other, applied)
	}
}

// adjustUntilNoConflict repeats an adjustment until no other conflicts with it, and returns whether it was applied.
func adjustUntilNoConflict(t *testing.T, s limitStore, adjustment dailyamount.Adjustment) bool {
	for {
		result, err := s.Adjust(context.Background(), adjustment)
		if errors.Is(err, dailyamount.ErrConflict) {
			continue
		}
		if err != nil {
			t.Error(err)
		}
		return result.Applied
	}
}

// checkParallelAdjustments checks that exactly as many amounts fit as each merchant's limit allows.
func checkParallelAdjustments(t *testing.T, s limitStore) {
	limits := map[string]int64{"m1": 700, "m2": 300}
	counts := map[string]*atomic.Int64{"m1": {}, "m2": {}}
	var group sync.WaitGroup
	for i := range 20 {
		for merchantID, maxSum := range limits {
			group.Go(func() {
				adjustment := newAdjustment(fmt.Sprint(i), 0, 100, 1, maxSum-100)
				adjustment.MerchantID = merchantID
				if adjustUntilNoConflict(t, s, adjustment) {
					counts[merchantID].Add(1)
				}
			})
		}
	}
	group.Wait()
	for merchantID, maxSum := range limits {
		if got := counts[merchantID].Load(); got != maxSum/100 {
			t.Errorf("%s: %d amounts of 100 fit into %d, want %d", merchantID, got, maxSum, maxSum/100)
		}
	}
	assertAdjust(t, s, newAdjustment("z", 0, 1, 1, 699), "sum 700")
}

// checkParallelSameKey checks that parallel adjustments count one transaction once.
func checkParallelSameKey(t *testing.T, s limitStore) {
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() { adjustUntilNoConflict(t, s, newAdjustment("a", 0, 100, 1, math.MaxInt64)) })
	}
	group.Wait()
	assertAdjust(t, s, newAdjustment("z", 0, 1, 1, 99), "sum 100")
}
