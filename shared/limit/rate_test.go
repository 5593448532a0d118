package limit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobilegateway/internal/limitmem"
	"mobilegateway/shared/limit"
)

// fakeClock is a clock that only a test moves.
type fakeClock struct {
	mutex sync.Mutex
	now   time.Time
}

func newFakeClock() *fakeClock {
	return &fakeClock{now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
}

func (c *fakeClock) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.now
}

func (c *fakeClock) Advance(by time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.now = c.now.Add(by)
}

func mustTake(t testing.TB, r *limit.RateLimiter, merchant string, perSecond, burst int) time.Duration {
	t.Helper()
	wait, err := r.Take(context.Background(), merchant, perSecond, burst)
	if err != nil {
		t.Fatal(err)
	}
	return wait
}

// decision "merchant-limits": a burst, and then so many a second.
func TestRate(t *testing.T) {
	store, at := &limitmem.Store{}, newFakeClock()
	r := limit.NewRateLimiter(store, at.Now)
	for i := range 3 {
		if wait := mustTake(t, r, "m1", 2, 3); wait != 0 {
			t.Fatalf("request %d of the burst waits %s", i+1, wait)
		}
	}
	if wait := mustTake(t, r, "m1", 2, 3); wait != 500*time.Millisecond {
		t.Errorf("the one after the burst waits %s", wait)
	}
	at.Advance(499 * time.Millisecond)
	if wait := mustTake(t, r, "m1", 2, 3); wait != time.Millisecond {
		t.Errorf("just before its time it waits %s", wait)
	}
	at.Advance(time.Millisecond)
	if wait := mustTake(t, r, "m1", 2, 3); wait != 0 {
		t.Errorf("at its time it waits %s", wait)
	}
	if wait := mustTake(t, r, "m1", 2, 3); wait != 500*time.Millisecond {
		t.Errorf("the next waits %s", wait)
	}
	at.Advance(time.Hour)
	for i := range 3 {
		if wait := mustTake(t, r, "m1", 2, 3); wait != 0 {
			t.Fatalf("after an hour request %d waits %s", i+1, wait)
		}
	}
}

// One write a request; none for a process that knows already that the bucket is empty.
func TestRateWriteCount(t *testing.T) {
	store, at := &limitmem.Store{}, newFakeClock()
	r := limit.NewRateLimiter(store, at.Now)
	for range 5 {
		mustTake(t, r, "m1", 10, 5)
	}
	if got := store.RateWrites("m1"); got != 5 {
		t.Errorf("%d writes for the burst", got)
	}
	mustTake(t, r, "m1", 10, 5)
	if got := store.RateWrites("m1"); got != 5 {
		t.Errorf("%d writes after a refusal", got)
	}
	for range 20 {
		at.Advance(100 * time.Millisecond)
		mustTake(t, r, "m1", 10, 5)
	}
	if got := store.RateWrites("m1"); got != 25 {
		t.Errorf("%d writes for 25 requests", got)
	}
	fresh := limit.NewRateLimiter(store, at.Now) // it assumes a full bucket, and writes once more
	mustTake(t, fresh, "m1", 10, 5)
	if got := store.RateWrites("m1"); got > 27 {
		t.Errorf("%d writes for a process that knew nothing", got)
	}
}

// decision "merchant-limits": a merchant's limit is its own.
func TestRatesAreIndependent(t *testing.T) {
	store, at := &limitmem.Store{}, newFakeClock()
	r := limit.NewRateLimiter(store, at.Now)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() { mustTake(t, r, "busy", 1, 2) })
		group.Go(func() {
			if wait := mustTake(t, r, "quiet", 100, 60); wait != 0 {
				t.Errorf("the quiet one waits %s", wait)
			}
		})
	}
	group.Wait()
	if wait := mustTake(t, r, "busy", 1, 2); wait == 0 {
		t.Error("the busy one does not wait")
	}
}

// A clock that is far ahead locks a merchant out for no longer than the assumed skew.
func TestClockAhead(t *testing.T) {
	for _, ahead := range []time.Duration{2 * time.Second, time.Minute, 24 * time.Hour} {
		store, at := &limitmem.Store{}, newFakeClock()
		failures := limit.NewRateLimiter(store, func() time.Time { return at.Now().Add(ahead) })
		right := limit.NewRateLimiter(store, at.Now)
		mustTake(t, right, "m1", 1, 2)
		mustTake(t, failures, "m1", 1, 2)
		waited := time.Duration(0)
		for mustTake(t, right, "m1", 1, 2) > 0 {
			at.Advance(100 * time.Millisecond)
			waited += 100 * time.Millisecond
		}
		if waited > 6*time.Second {
			t.Errorf("%s ahead: locked out for %s", ahead, waited)
		}
	}
}

func TestLowerLimitAppliesImmediately(t *testing.T) {
	store, at := &limitmem.Store{}, newFakeClock()
	r := limit.NewRateLimiter(store, at.Now)
	for range 100 {
		mustTake(t, r, "m1", 1, 100)
	}
	if wait := mustTake(t, r, "m1", 1, 1); wait != 0 { // this limit cannot have written a time that is a minute ahead
		t.Errorf("waits %s for the earlier limit", wait)
	}
	if wait := mustTake(t, r, "m1", 1, 1); wait == 0 {
		t.Error("the lower limit does not apply")
	}
}

func TestRateStoreFailure(t *testing.T) {
	store, at := &limitmem.Store{}, newFakeClock()
	r := limit.NewRateLimiter(store, at.Now)
	store.SetFaults(func() limitmem.Fault { return limitmem.Error })
	if _, err := r.Take(context.Background(), "m1", 1, 1); !errors.Is(err, limitmem.ErrInjected) {
		t.Errorf("error %v", err)
	}
	store.SetFaults(func() limitmem.Fault { return limitmem.Conflict })
	if wait := mustTake(t, r, "m1", 1, 1); wait != time.Second {
		t.Errorf("a full partition waits %s", wait)
	}
}

// Requests of several processes, whose clocks differ, never exceed the limit and the difference of the clocks. A
// request is accepted once the bucket has had time to fill.
func TestRateItemRetention(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perSecond, burst := rapid.IntRange(1, 50).Draw(t, "per second"), rapid.IntRange(1, 20).Draw(t, "burst")
		skew := time.Duration(rapid.IntRange(0, 2000).Draw(t, "skew in ms")) * time.Millisecond
		store, at := &limitmem.Store{}, newFakeClock()
		processes := []*limit.RateLimiter{
			limit.NewRateLimiter(store, at.Now), limit.NewRateLimiter(store, at.Now),
			limit.NewRateLimiter(store, func() time.Time { return at.Now().Add(-skew) }),
		}
		start, accepted := at.Now(), 0
		for i := range rapid.IntRange(1, 80).Draw(t, "requests") {
			at.Advance(time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond)
			process := processes[rapid.IntRange(0, 2).Draw(t, "process")]
			wait, err := process.Take(context.Background(), "m1", perSecond, burst)
			if err != nil {
				t.Fatal(err)
			}
			if wait == 0 {
				accepted++
			}
			maxAmount := burst + int((at.Now().Sub(start)+skew)*time.Duration(perSecond)/time.Second) + 1
			if accepted > maxAmount {
				t.Fatalf("request %d: %d accepted after %s, at most %d", i, accepted, at.Now().Sub(start), maxAmount)
			}
		}
		at.Advance(skew + 6*time.Second + time.Duration(burst)*time.Second/time.Duration(perSecond))
		for i := range burst {
			if wait, err := processes[0].Take(context.Background(), "m1", perSecond, burst); wait != 0 || err != nil {
				t.Fatalf("request %d of a full bucket waits %s, %v", i, wait, err)
			}
		}
	})
}

func Example() {
	at := newFakeClock()
	rate := limit.NewRateLimiter(&limitmem.Store{}, at.Now)
	for range 3 {
		wait, err := rate.Take(context.Background(), "m1", 1, 2)
		fmt.Println(wait, err)
	}
	// Output:
	// 0s <nil>
	// 0s <nil>
	// 1s <nil>
}
