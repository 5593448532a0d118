package dailyamount_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// counterFixture is a Counter over a store in memory, at 10:00 of the day.
type counterFixture struct {
	*dailyamount.Counter
	store  *storetest.Limits
	now    time.Time
	sleeps []time.Duration
}

func newCounterFixture() *counterFixture {
	c := &counterFixture{store: storetest.NewLimits(), now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	c.Counter = &dailyamount.Counter{
		Store: c.store, Now: func() time.Time { return c.now }, Rand: rand.Reader,
		Sleep: func(ctx context.Context, wait time.Duration) error {
			c.sleeps = append(c.sleeps, wait)
			return ctx.Err()
		},
	}
	return c
}

// entry is a payment that was first sent now.
func (c *counterFixture) entry(id string, minor int64) *ledger.Entry {
	return &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: id}, Merchant: ledger.Merchant{ID: "m1"}, Version: 1,
		Call:   ledger.Call{SentAt: c.now},
		Amount: ledger.Amount{Minor: minor, Currency: "XOF", CountsDaily: true},
	}
}

// profileWithLimit is a merchant with a daily amount in XOF and XAF.
func profileWithLimit(minor int64) *merchant.Profile {
	return &merchant.Profile{Limits: merchant.Limits{DailyAmounts: map[string]int64{"XOF": minor, "XAF": minor}}}
}

func (c *counterFixture) mustReserve(t testing.TB, e *ledger.Entry, maxSum int64) {
	t.Helper()
	if err := c.Reserve(context.Background(), profileWithLimit(maxSum), e); err != nil {
		t.Errorf("%s is not counted: %v", e.ID, err)
	}
}

func (c *counterFixture) mustRefuse(t testing.TB, e *ledger.Entry, maxSum, remaining int64) {
	t.Helper()
	err := c.Reserve(context.Background(), profileWithLimit(maxSum), e)
	var over *dailyamount.OverLimitError
	if !errors.As(err, &over) || over.Remaining != strconv.FormatInt(remaining, 10) {
		t.Errorf("%s: error %v, want over the limit with %d remaining", e.ID, err, remaining)
	}
}

// mustRefund refunds an entry as if it had been released.
func (c *counterFixture) mustRefund(t testing.TB, e *ledger.Entry) {
	t.Helper()
	if err := c.Refund(context.Background(), released(e)); err != nil {
		t.Error(err)
	}
}

// changed is an entry after a change, as the ledger stores it.
func changed(e *ledger.Entry, change func(*ledger.Entry) ledger.Transition) *ledger.Entry {
	next := e.Clone()
	if change(next) == ledger.NoTransition {
		return e
	}
	next.Version++
	return next
}

func released(e *ledger.Entry) *ledger.Entry {
	r := e.Clone()
	r.State = ledger.Released
	return r
}

func (c *counterFixture) assertSum(t testing.TB, want int64) {
	t.Helper()
	if got := c.store.Sum("m1", "XOF"); got != want {
		t.Errorf("counted %d, want %d", got, want)
	}
}

// decision "merchant-limits".
func TestReserveAndRefund(t *testing.T) {
	c := newCounterFixture()
	a, b := c.entry("a", 600), c.entry("b", 500)
	c.mustRefuse(t, c.entry("above the limit", 1001), 1000, 1000)
	c.mustReserve(t, a, 1000)
	c.mustRefuse(t, b, 1000, 400)
	c.mustReserve(t, a, 1000) // a repeat
	c.assertSum(t, 600)
	c.mustRefund(t, a)
	c.mustRefund(t, a)
	c.assertSum(t, 0)
	all := c.entry("all of the limit", 1000)
	c.mustReserve(t, all, 1000)
	c.mustRefund(t, all)
	c.mustReserve(t, b, 1000)
	c.mustRefund(t, a)
	c.assertSum(t, 500)
	c.mustRefuse(t, c.entry("c", 501), 1000, 500)
	c.mustReserve(t, c.entry("d", 500), 1000)
	c.mustRefuse(t, c.entry("e", 1), 1000, 0)
	c.mustRefuse(t, c.entry("f", 5000), 700, 0) // the limit was lowered
	unknown := c.entry("g", 5000)
	unknown.EverUnknown = true
	c.mustReserve(t, unknown, 1000) // decision "unknown-sticks": it is never refused
	if err := c.Reserve(context.Background(), &merchant.Profile{}, c.entry("h", 5000)); err != nil {
		t.Errorf("the limit was removed, and the amount is refused: %v", err)
	}
}

// A refund by a version that another attempt has taken over has no effect.
func TestStaleRefundIsIgnored(t *testing.T) {
	c := newCounterFixture()
	first := c.entry("a", 600) // version 1 was reserved and counted, version 2 released
	c.mustReserve(t, first, 1000)
	first.Version = 2
	retaken := c.entry("a", 600)
	retaken.Version = 3
	c.mustReserve(t, retaken, 1000)
	c.mustRefund(t, first)
	c.assertSum(t, 600)
	retaken.Version = 4
	c.mustRefund(t, retaken)
	c.assertSum(t, 0)
	if err := c.Reserve(context.Background(), profileWithLimit(1000), first); err == nil {
		t.Error("an attempt that was taken over is counted")
	}
}

// A release that bound no body may be taken over with another amount.
func TestChangedAmountForSameKey(t *testing.T) {
	c := newCounterFixture()
	first := c.entry("a", 600)
	c.mustReserve(t, first, 1000)
	more, less := c.entry("a", 900), c.entry("a", 200)
	more.Version, less.Version = 3, 5
	c.mustReserve(t, more, 1000)
	c.assertSum(t, 900)
	c.mustReserve(t, less, 1000)
	c.assertSum(t, 200)
	c.mustRefund(t, less)
	c.assertSum(t, 0)
}

// Each day, currency and merchant has its own sum. A day that is over refunds nothing, and refuses nothing.
func TestDays(t *testing.T) {
	c := newCounterFixture()
	today, otherCurrency, otherMerchant := c.entry("a", 1000), c.entry("b", 1000), c.entry("c", 1000)
	otherCurrency.Amount.Currency, otherMerchant.Merchant.ID = "XAF", "m2"
	for _, e := range []*ledger.Entry{today, otherCurrency, otherMerchant} {
		c.mustReserve(t, e, 1000)
	}
	c.now = c.now.Add(14*time.Hour + 59*time.Minute) // clocks differ: the day stays open for one more hour
	c.mustReserve(t, c.entry("d", 1000), 1000)
	c.mustRefund(t, today)
	c.assertSum(t, 1000)
	c.now = c.now.Add(time.Hour)
	writes := c.store.CallCount(storetest.Adjust)
	c.mustRefund(t, today)
	if c.store.CallCount(storetest.Adjust) != writes {
		t.Error("a day that is over is refunded")
	}
	c.mustReserve(t, today, 0) // its first attempt died before it was counted
	c.assertSum(t, 2000)
	c.now, writes = c.now.Add(48*time.Hour), c.store.CallCount(storetest.Adjust)
	c.mustReserve(t, today, 0)
	if c.store.CallCount(storetest.Adjust) != writes {
		t.Error("a day whose items are deleted is written")
	}
}

// decision "merchant-limits": an entry that moved to a later day is refunded on the earlier one. Within a day it moves
// nothing.
func TestRefundMoved(t *testing.T) {
	c := newCounterFixture()
	first := c.entry("a", 600)
	c.mustReserve(t, first, 1000)
	moved := func(after time.Duration) {
		updated := first.Clone()
		updated.SentAt, updated.Version = first.SentAt.Add(after), first.Version+1
		if err := c.RefundMoved(context.Background(), first, updated); err != nil {
			t.Error(err)
		}
	}
	moved(time.Minute)
	c.assertSum(t, 600)
	moved(24 * time.Hour)
	c.assertSum(t, 0)
}

// A refund of an amount that is not counted leaves a fence: a delayed reservation of an earlier version does not count.
func TestRefundBeforeDelayedReservation(t *testing.T) {
	c := newCounterFixture()
	e := c.entry("a", 600)
	refunded := e.Clone()
	refunded.Version = 2
	c.mustRefund(t, refunded)
	if err := c.Reserve(context.Background(), profileWithLimit(1000), e); err == nil {
		t.Error("a reservation that was refunded before is counted")
	}
	c.assertSum(t, 0)
	later := e.Clone()
	later.Version = 3
	c.mustReserve(t, later, 1000)
	c.assertSum(t, 600)
}

// A late success counts a payment that was released, also if a takeover died before it counted the amount.
func TestLateSuccessAfterRelease(t *testing.T) {
	for name, takenOver := range map[string]bool{"released": false, "taken over": true} {
		for _, at := range []time.Duration{time.Minute, 16 * time.Hour} {
			t.Run(fmt.Sprint(name, ", after ", at), func(t *testing.T) {
				c := newCounterFixture()
				e := c.entry("a", 600)
				e.State, e.Status, e.Version = ledger.Released, ledger.Pending, 2
				if takenOver {
					e.State, e.ReleasedBefore, e.Version = ledger.Reserved, true, 3
				}
				c.now = c.now.Add(at)
				store := func(change func(*ledger.Entry) ledger.Transition) (*ledger.Entry, error) {
					e = changed(e, change)
					return e, nil
				}
				change, err := c.StoreChange(context.Background(), store, func(e *ledger.Entry) ledger.Transition {
					report := ledger.StatusReport{Status: ledger.Successful, Source: "callback"}
					return ledger.EndPayment.After(e.ApplyFinalStatus(report, c.now))
				})
				if err != nil || change.RefundErr != nil || e.Status != ledger.Successful {
					t.Fatalf("status %s, %v, %v", e.Status, change.RefundErr, err)
				}
				c.assertSum(t, 600)
				delayed := released(e) // the refund of the release, which comes only now
				delayed.Status, delayed.Version = ledger.Pending, 2
				if err := c.Refund(context.Background(), delayed); err != nil {
					t.Error(err)
				}
				c.assertSum(t, 600)
			})
		}
	}
}

// An entry costs one write, and one that is taken over costs two more. Entries that need nothing cost nothing.
func TestAmountWriteCount(t *testing.T) {
	c := newCounterFixture()
	a, b := c.entry("a", 1), c.entry("b", 1)
	b.Amount.CountsDaily = false
	steps := []struct {
		name    string
		version int64
		run     func()
		writes  int
	}{
		{"a first reservation", 1, func() { c.mustReserve(t, a, 1000) }, 1},
		{"a repeat", 2, func() { c.mustReserve(t, a, 1000) }, 2},
		{"a refund", 3, func() { c.mustRefund(t, a) }, 1},
		{"a refund of an entry that may be applied", 4, func() { _ = c.Refund(context.Background(), a) }, 0},
		{"a reservation without a limit", 1, func() { c.mustReserve(t, b, 1000) }, 0},
		{"a refund without a limit", 1, func() { c.mustRefund(t, b) }, 0},
	}
	for _, step := range steps {
		before := c.store.CallCount(storetest.Adjust)
		a.Version = step.version
		step.run()
		if got := c.store.CallCount(storetest.Adjust) - before; got != step.writes {
			t.Errorf("%s: %d writes, want %d", step.name, got, step.writes)
		}
	}
}

func TestConflictRetries(t *testing.T) {
	c := newCounterFixture()
	c.Rand = strings.NewReader(strings.Repeat("\xff", 100)) // the longest waits
	conflicts := 5
	c.store.InjectFaults(func(storetest.Call) storetest.Fault {
		conflicts--
		if conflicts >= 0 {
			return storetest.ConcurrentWrite
		}
		return storetest.NoFault
	})
	c.mustReserve(t, c.entry("a", 1), 10)
	if len(c.sleeps) != 5 {
		t.Errorf("waited %v, want one wait for each of 5 conflicts", c.sleeps)
	}
	for i, wait := range c.sleeps {
		if want := min(15*time.Millisecond<<i, 240*time.Millisecond); wait != want {
			t.Errorf("wait %d is %s, want %s", i+1, wait, want)
		}
	}
	c.store.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.ConcurrentWrite })
	if err := c.Reserve(context.Background(), profileWithLimit(10), c.entry("b", 1)); err == nil {
		t.Error("counted after conflicts without end")
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Reserve(cancelled, profileWithLimit(10), c.entry("b", 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	c.store.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
	if err := c.Refund(context.Background(), released(c.entry("a", 1))); !errors.Is(err, storetest.ErrInjected) {
		t.Errorf("error %v, want the store's", err)
	}
}
