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

// counter is Amounts over a store in memory, at 10:00 of the day.
type counter struct {
	*limit.Amounts
	store *limitmem.Store
	clock *clock
	waits []time.Duration
}

func newCounter() *counter {
	c := &counter{store: &limitmem.Store{}, clock: newClock()}
	c.Amounts = &limit.Amounts{Store: c.store, Now: c.clock.Now, Rand: rand.Reader, Pause: func(ctx context.Context, wait time.Duration) error {
		c.waits = append(c.waits, wait)
		return ctx.Err()
	}}
	return c
}

// entry is a payment that was first sent now.
func (c *counter) entry(id string, minor int64) *ledger.Entry {
	return &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: id}, MerchantID: "m1", Version: 1, SentAt: c.clock.Now(),
		Minor: minor, Currency: "XOF", Limited: true,
	}
}

func (c *counter) count(t testing.TB, e *ledger.Entry, most, left int64) {
	t.Helper()
	err := c.Count(context.Background(), e, e.Version, most)
	var over *limit.Over
	switch {
	case left < 0 && err != nil:
		t.Errorf("%s is not counted: %v", e.ID, err)
	case left >= 0 && (!errors.As(err, &over) || over.Left != left):
		t.Errorf("%s: %v, want %d left", e.ID, err, left)
	}
}

func (c *counter) giveBack(t testing.TB, e *ledger.Entry) {
	t.Helper()
	if err := c.GiveBack(context.Background(), e); err != nil {
		t.Error(err)
	}
}

func (c *counter) sum(t testing.TB, want int64) {
	t.Helper()
	if got := c.store.Sum("m1", "XOF"); got != want {
		t.Errorf("counted %d, want %d", got, want)
	}
}

const counted = -1

// decision "merchant-limits".
func TestAmounts(t *testing.T) {
	c := newCounter()
	a, b := c.entry("a", 600), c.entry("b", 500)
	c.count(t, a, 1000, counted)
	c.count(t, b, 1000, 400)
	c.count(t, a, 1000, counted) // a repeat
	c.sum(t, 600)
	c.giveBack(t, a)
	c.giveBack(t, a)
	c.sum(t, 0)
	c.count(t, b, 1000, counted)
	c.giveBack(t, a)
	c.sum(t, 500)
	c.count(t, c.entry("c", 501), 1000, 500)
	c.count(t, c.entry("d", 500), 1000, counted)
	c.count(t, c.entry("e", 1), 1000, 0)
	c.count(t, c.entry("f", 5000), 700, 0)                   // the limit was lowered
	c.count(t, c.entry("g", 5000), limit.Unlimited, counted) // and this one is never refused
}

func TestAnAmountOverTheWholeLimit(t *testing.T) {
	c := newCounter()
	c.count(t, c.entry("a", 1001), 1000, 1000)
	c.count(t, c.entry("b", 1000), 1000, counted)
}

// What is given back by the version that another attempt has taken over stays counted.
func TestALaterAttemptKeepsItsAmount(t *testing.T) {
	c := newCounter()
	released := c.entry("a", 600) // version 1 was held and counted, version 2 released
	c.count(t, released, 1000, counted)
	released.Version = 2
	retaken := c.entry("a", 600)
	retaken.Version = 3
	c.count(t, retaken, 1000, counted)
	c.giveBack(t, released)
	c.sum(t, 600)
	retaken.Version = 4
	c.giveBack(t, retaken)
	c.sum(t, 0)
	if err := c.Count(context.Background(), released, 2, 1000); err == nil {
		t.Error("an attempt that was taken over counts")
	}
}

// A release that bound no body may be taken over by another amount.
func TestAnotherAmountUnderTheKey(t *testing.T) {
	c := newCounter()
	first := c.entry("a", 600)
	c.count(t, first, 1000, counted)
	more, less := c.entry("a", 900), c.entry("a", 200)
	more.Version, less.Version = 3, 5
	c.count(t, more, 1000, counted)
	c.sum(t, 900)
	c.count(t, less, 1000, counted)
	c.sum(t, 200)
	c.giveBack(t, less)
	c.sum(t, 0)
}

// Each day, currency and merchant has its own sum, and a day that is over counts nothing any more.
func TestDays(t *testing.T) {
	c := newCounter()
	today, other, merchant := c.entry("a", 1000), c.entry("b", 1000), c.entry("c", 1000)
	other.Currency, merchant.MerchantID = "XAF", "m2"
	for _, e := range []*ledger.Entry{today, other, merchant} {
		c.count(t, e, 1000, counted)
	}
	c.clock.Advance(14*time.Hour + 59*time.Minute) // clocks differ: the day is open for an hour more
	c.count(t, c.entry("d", 1000), 1000, counted)
	c.giveBack(t, today)
	c.sum(t, 1000)
	c.clock.Advance(time.Hour)
	transfers := c.store.Transfers()
	c.giveBack(t, today)
	c.count(t, today, 0, counted)
	if c.store.Transfers() != transfers {
		t.Error("a day that is over is written")
	}
}

// One transfer an order; two for one that is taken over.
func TestAmountsCost(t *testing.T) {
	c := newCounter()
	a := c.entry("a", 1)
	c.count(t, a, 1000, counted)
	if got := c.store.Transfers(); got != 1 {
		t.Errorf("%d transfers for a first count", got)
	}
	a.Version = 2
	c.count(t, a, 1000, counted)
	if got := c.store.Transfers(); got != 3 {
		t.Errorf("%d transfers with a repeat", got)
	}
	a.Version = 3
	c.giveBack(t, a)
	if got := c.store.Transfers(); got != 4 {
		t.Errorf("%d transfers with a give-back", got)
	}
}

func TestConflicts(t *testing.T) {
	c := newCounter()
	left := 5
	c.store.SetFaults(func() limitmem.Fault {
		left--
		if left >= 0 {
			return limitmem.Conflict
		}
		return limitmem.None
	})
	c.count(t, c.entry("a", 1), 10, counted)
	if len(c.waits) != 5 {
		t.Errorf("waited %v", c.waits)
	}
	for i, wait := range c.waits {
		if base := min(10*time.Millisecond<<i, 160*time.Millisecond); wait < base/2 || wait > base*3/2 {
			t.Errorf("wait %d is %s", i+1, wait)
		}
	}
	c.store.SetFaults(func() limitmem.Fault { return limitmem.Conflict })
	if err := c.Count(context.Background(), c.entry("b", 1), 1, 10); err == nil {
		t.Error("counted all the same")
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Count(gone, c.entry("b", 1), 1, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	c.store.SetFaults(func() limitmem.Fault { return limitmem.Error })
	if err := c.GiveBack(context.Background(), c.entry("a", 1)); !errors.Is(err, limitmem.ErrInjected) {
		t.Errorf("error %v", err)
	}
}

// decision "merchant-limits": two merchants side by side, each at its own limit.
func TestMerchantsSideBySide(t *testing.T) {
	c := newCounter()
	var mutex sync.Mutex
	fit := map[string]int{}
	var group sync.WaitGroup
	for i := range 100 {
		merchant := []string{"m1", "m2"}[i%2]
		group.Go(func() {
			e := c.entry(fmt.Sprint(i), 100)
			e.MerchantID = merchant
			if c.Count(context.Background(), e, 1, map[string]int64{"m1": 1000, "m2": 3000}[merchant]) == nil {
				mutex.Lock()
				fit[merchant]++
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	if fit["m1"] != 10 || fit["m2"] != 30 {
		t.Errorf("%v", fit)
	}
}
