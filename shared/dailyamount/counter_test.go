package limit_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"mobilegateway/internal/limitmem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
)

// amountsFixture is Amounts over a store in memory, at 10:00 of the day.
type amountsFixture struct {
	*limit.DailyAmounts
	store  *limitmem.Store
	clock  *fakeClock
	sleeps []time.Duration
}

func newAmountsFixture() *amountsFixture {
	c := &amountsFixture{store: &limitmem.Store{}, clock: newFakeClock()}
	c.DailyAmounts = &limit.DailyAmounts{Store: c.store, Now: c.clock.Now, Rand: rand.Reader, Sleep: func(ctx context.Context, wait time.Duration) error {
		c.sleeps = append(c.sleeps, wait)
		return ctx.Err()
	}}
	return c
}

// entry is a payment that was first sent now.
func (c *amountsFixture) entry(id string, minor int64) *ledger.Entry {
	return &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: id}, MerchantID: "m1", Version: 1, SentAt: c.clock.Now(),
		AmountMinor: minor, Currency: "XOF", CountsDailyAmount: true,
	}
}

func (c *amountsFixture) mustReserve(t testing.TB, e *ledger.Entry, maxAmount, remaining int64) {
	t.Helper()
	err := c.Reserve(context.Background(), e, e.Version, maxAmount)
	var over *limit.OverLimitError
	switch {
	case remaining < 0 && err != nil:
		t.Errorf("%s is not counted: %v", e.ID, err)
	case remaining >= 0 && (!errors.As(err, &over) || over.Remaining != remaining):
		t.Errorf("%s: %v, want %d left", e.ID, err, remaining)
	}
}

func (c *amountsFixture) mustRefund(t testing.TB, e *ledger.Entry) {
	t.Helper()
	if err := c.Refund(context.Background(), e); err != nil {
		t.Error(err)
	}
}

func (c *amountsFixture) assertSum(t testing.TB, want int64) {
	t.Helper()
	if got := c.store.Sum("m1", "XOF"); got != want {
		t.Errorf("counted %d, want %d", got, want)
	}
}

const counted = -1

// decision "merchant-limits".
func TestReserveAndRefund(t *testing.T) {
	c := newAmountsFixture()
	a, b := c.entry("a", 600), c.entry("b", 500)
	c.mustReserve(t, a, 1000, counted)
	c.mustReserve(t, b, 1000, 400)
	c.mustReserve(t, a, 1000, counted) // a repeat
	c.assertSum(t, 600)
	c.mustRefund(t, a)
	c.mustRefund(t, a)
	c.assertSum(t, 0)
	c.mustReserve(t, b, 1000, counted)
	c.mustRefund(t, a)
	c.assertSum(t, 500)
	c.mustReserve(t, c.entry("c", 501), 1000, 500)
	c.mustReserve(t, c.entry("d", 500), 1000, counted)
	c.mustReserve(t, c.entry("e", 1), 1000, 0)
	c.mustReserve(t, c.entry("f", 5000), 700, 0)                   // the limit was lowered
	c.mustReserve(t, c.entry("g", 5000), limit.Unlimited, counted) // and this one is never refused
}

func TestAmountAboveDailyLimit(t *testing.T) {
	c := newAmountsFixture()
	c.mustReserve(t, c.entry("a", 1001), 1000, 1000)
	c.mustReserve(t, c.entry("b", 1000), 1000, counted)
}

// What is given back by the version that another attempt has taken over stays counted.
func TestStaleRefundIsIgnored(t *testing.T) {
	c := newAmountsFixture()
	released := c.entry("a", 600) // version 1 was held and counted, version 2 released
	c.mustReserve(t, released, 1000, counted)
	released.Version = 2
	retaken := c.entry("a", 600)
	retaken.Version = 3
	c.mustReserve(t, retaken, 1000, counted)
	c.mustRefund(t, released)
	c.assertSum(t, 600)
	retaken.Version = 4
	c.mustRefund(t, retaken)
	c.assertSum(t, 0)
	if err := c.Reserve(context.Background(), released, 2, 1000); err == nil {
		t.Error("an attempt that was taken over counts")
	}
}

// A release that bound no body may be taken over by another amount.
func TestChangedAmountForSameKey(t *testing.T) {
	c := newAmountsFixture()
	first := c.entry("a", 600)
	c.mustReserve(t, first, 1000, counted)
	more, less := c.entry("a", 900), c.entry("a", 200)
	more.Version, less.Version = 3, 5
	c.mustReserve(t, more, 1000, counted)
	c.assertSum(t, 900)
	c.mustReserve(t, less, 1000, counted)
	c.assertSum(t, 200)
	c.mustRefund(t, less)
	c.assertSum(t, 0)
}

// Each day, currency and merchant has its own sum, and a day that is over counts nothing any more.
func TestDays(t *testing.T) {
	c := newAmountsFixture()
	today, other, merchant := c.entry("a", 1000), c.entry("b", 1000), c.entry("c", 1000)
	other.Currency, merchant.MerchantID = "XAF", "m2"
	for _, e := range []*ledger.Entry{today, other, merchant} {
		c.mustReserve(t, e, 1000, counted)
	}
	c.clock.Advance(14*time.Hour + 59*time.Minute) // clocks differ: the day is open for an hour more
	c.mustReserve(t, c.entry("d", 1000), 1000, counted)
	c.mustRefund(t, today)
	c.assertSum(t, 1000)
	c.clock.Advance(time.Hour)
	transfers := c.store.AmountWrites()
	c.mustRefund(t, today)
	c.mustReserve(t, today, 0, counted)
	if c.store.AmountWrites() != transfers {
		t.Error("a day that is over is written")
	}
}

// One transfer an order; two for one that is taken over.
func TestAmountWriteCount(t *testing.T) {
	c := newAmountsFixture()
	a := c.entry("a", 1)
	c.mustReserve(t, a, 1000, counted)
	if got := c.store.AmountWrites(); got != 1 {
		t.Errorf("%d transfers for a first count", got)
	}
	a.Version = 2
	c.mustReserve(t, a, 1000, counted)
	if got := c.store.AmountWrites(); got != 3 {
		t.Errorf("%d transfers with a repeat", got)
	}
	a.Version = 3
	c.mustRefund(t, a)
	if got := c.store.AmountWrites(); got != 4 {
		t.Errorf("%d transfers with a give-back", got)
	}
}

func TestConflictRetries(t *testing.T) {
	c := newAmountsFixture()
	remaining := 5
	c.store.SetFaults(func() limitmem.Fault {
		remaining--
		if remaining >= 0 {
			return limitmem.Conflict
		}
		return limitmem.None
	})
	c.mustReserve(t, c.entry("a", 1), 10, counted)
	if len(c.sleeps) != 5 {
		t.Errorf("waited %v", c.sleeps)
	}
	for i, wait := range c.sleeps {
		if base := min(10*time.Millisecond<<i, 160*time.Millisecond); wait < base/2 || wait > base*3/2 {
			t.Errorf("wait %d is %s", i+1, wait)
		}
	}
	c.store.SetFaults(func() limitmem.Fault { return limitmem.Conflict })
	if err := c.Reserve(context.Background(), c.entry("b", 1), 1, 10); err == nil {
		t.Error("counted all the same")
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Reserve(gone, c.entry("b", 1), 1, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	c.store.SetFaults(func() limitmem.Fault { return limitmem.Error })
	if err := c.Refund(context.Background(), c.entry("a", 1)); !errors.Is(err, limitmem.ErrInjected) {
		t.Errorf("error %v", err)
	}
}

// decision "merchant-limits": two merchants side by side, each at its own limit.
func TestMerchantsInParallel(t *testing.T) {
	c := newAmountsFixture()
	var mutex sync.Mutex
	accepted := map[string]int{}
	var group sync.WaitGroup
	for i := range 100 {
		merchant := []string{"m1", "m2"}[i%2]
		group.Go(func() {
			e := c.entry(fmt.Sprint(i), 100)
			e.MerchantID = merchant
			if c.Reserve(context.Background(), e, 1, map[string]int64{"m1": 1000, "m2": 3000}[merchant]) == nil {
				mutex.Lock()
				accepted[merchant]++
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	if accepted["m1"] != 10 || accepted["m2"] != 30 {
		t.Errorf("%v", accepted)
	}
}
