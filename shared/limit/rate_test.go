package limit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobilegateway/proof/kits/storetest"
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

// newLimiter returns a limiter over an empty store, the store and its clock.
func newLimiter() (*limit.RateLimiter, *storetest.Limits, *fakeClock) {
	store, at := storetest.NewLimits(), newFakeClock()
	return limit.NewRateLimiter(store, at.Now), store, at
}

// decision "merchant-limits": a burst, and then so many a second.
func TestRate(t *testing.T) {
	r, _, at := newLimiter()
	for i, request := range []struct{ after, wait time.Duration }{
		{0, 0}, {0, 0}, {0, 0}, {0, 500 * time.Millisecond}, // a burst of three
		{499 * time.Millisecond, time.Millisecond}, {time.Millisecond, 0}, {0, 500 * time.Millisecond},
		{time.Hour, 0}, {0, 0}, {0, 0}, {0, 500 * time.Millisecond}, // full again
	} {
		at.Advance(request.after)
		if wait := mustTake(t, r, "m1", 2, 3); wait != request.wait {
			t.Fatalf("request %d waits %s, want %s", i+1, wait, request.wait)
		}
	}
}

// One write a request; none for a process that knows already that the bucket is empty.
func TestRateWriteCount(t *testing.T) {
	r, store, at := newLimiter()
	for _, c := range []struct {
		name             string
		requests, writes int
		every            time.Duration
	}{
		{"a burst", 5, 5, 0}, {"a refusal", 1, 5, 0}, {"20 more, one each tenth of a second", 20, 25, time.Second / 10},
	} {
		for range c.requests {
			at.Advance(c.every)
			mustTake(t, r, "m1", 10, 5)
		}
		if got := store.CallCount(storetest.UpdateRate); got != c.writes {
			t.Errorf("%d writes after %s, want %d", got, c.name, c.writes)
		}
	}
	fresh := limit.NewRateLimiter(store, at.Now) // it assumes a full bucket, and writes once more
	mustTake(t, fresh, "m1", 10, 5)
	if got := store.CallCount(storetest.UpdateRate); got > 27 {
		t.Errorf("%d writes for a process that knew nothing", got)
	}
}

// A batch takes what the bucket has, at the cost of one write.
func TestTakeUpTo(t *testing.T) {
	r, store, at := newLimiter()
	for i, c := range []struct {
		after       time.Duration
		most, taken int
		wait        time.Duration
		writes      int
	}{
		{0, 3, 3, 0, 1},
		{0, 9, 2, 0, 2}, // the rest of the burst
		{0, 9, 0, 100 * time.Millisecond, 2},
		{250 * time.Millisecond, 9, 2, 0, 3}, {0, 1, 0, 50 * time.Millisecond, 3},
		{time.Hour, 9, 5, 0, 4}, // never more than the burst
		{100 * time.Millisecond, 1, 1, 0, 5},
	} {
		at.Advance(c.after)
		taken, wait, err := r.TakeUpTo(t.Context(), "account", limit.Rate{PerSecond: 10, Burst: 5}, c.most)
		if taken != c.taken || wait != c.wait || err != nil {
			t.Fatalf("batch %d: %d taken, wait %s, %v; want %d, %s", i+1, taken, wait, err, c.taken, c.wait)
		}
		if got := store.CallCount(storetest.UpdateRate); got != c.writes {
			t.Errorf("batch %d: %d writes so far, want %d", i+1, got, c.writes)
		}
	}
	other := limit.NewRateLimiter(store, at.Now) // it assumes a full bucket
	at.Advance(200 * time.Millisecond)
	if taken, _, err := other.TakeUpTo(t.Context(), "account", limit.Rate{PerSecond: 10, Burst: 5}, 5); taken != 2 {
		t.Errorf("another process takes %d, %v; want the 2 that are there", taken, err)
	}
}

// contestedStore is a store in which another process always writes first.
type contestedStore struct {
	fullAt  int64
	updates []limit.RateUpdate
}

// UpdateRate implements limit.RateStore.
func (s *contestedStore) UpdateRate(
	_ context.Context, _ string, u limit.RateUpdate,
) (stored int64, updated bool, err error) {
	s.updates = append(s.updates, u)
	return s.fullAt, false, nil
}

// The second write of a request depends on the time that the first one found.
func TestRateUpdates(t *testing.T) {
	const interval, tolerance, skew = 500_000, 1_000_000, 5_000_000 // of 2 a second and a burst of 3, in microseconds
	at := newFakeClock()
	now := at.Now().UnixMicro()
	for name, c := range map[string]struct {
		found int64 // after now
		wait  int64
		want  limit.RateUpdate
	}{
		"full":               {-1, interval, limit.RateUpdate{Max: now - 1, AllowAbsent: true, Set: now + interval}},
		"just not full":      {0, interval, limit.RateUpdate{Min: now, Max: now + tolerance, Add: interval}},
		"one left":           {tolerance, interval, limit.RateUpdate{Min: now, Max: now + tolerance, Add: interval}},
		"empty":              {tolerance + 1, 1, limit.RateUpdate{}},
		"as far as possible": {tolerance + interval + skew, interval + skew, limit.RateUpdate{}},
		"further than possible": {tolerance + interval + skew + 1, interval, limit.RateUpdate{
			Min: now + tolerance + interval + skew + 1, Max: now + tolerance + interval + skew + 1,
			Set: now + interval,
		}},
	} {
		store := &contestedStore{fullAt: now + c.found}
		wait := mustTake(t, limit.NewRateLimiter(store, at.Now), "m1", 2, 3)
		if want := time.Duration(c.wait) * time.Microsecond; wait != want {
			t.Errorf("%s: waits %s, want %s", name, wait, want)
		}
		if c.want == (limit.RateUpdate{}) {
			continue
		}
		c.want.ExpireAt = at.Now().Add(24 * time.Hour)
		if len(store.updates) != 3 || store.updates[1] != c.want {
			t.Errorf("%s: writes %+v; want 3, the second one %+v", name, store.updates, c.want)
		}
	}
}

// A process remembers 1,024 merchants. A forgotten one costs one more write.
func TestRememberedMerchants(t *testing.T) {
	for others, want := range map[int]int{1: 2, 1023: 2, 1024: 3} {
		store := storetest.NewLimits()
		r := limit.NewRateLimiter(store, newFakeClock().Now)
		mustTake(t, r, "m1", 1, 2)
		for i := range others {
			mustTake(t, r, fmt.Sprint("other", i), 1, 2)
		}
		mustTake(t, r, "m1", 1, 2)
		if got := store.CallCount(storetest.UpdateRate) - others; got != want {
			t.Errorf("%d other merchants: %d writes for two requests, want %d", others, got, want)
		}
	}
}

// decision "merchant-limits": a merchant's limit is its own.
func TestRatesAreIndependent(t *testing.T) {
	r, _, _ := newLimiter()
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
		store, at := storetest.NewLimits(), newFakeClock()
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
	r, _, _ := newLimiter()
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
	r, store, _ := newLimiter()
	store.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
	if _, err := r.Take(context.Background(), "m1", 1, 1); !errors.Is(err, storetest.ErrInjected) {
		t.Errorf("error %v", err)
	}
	store.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.ConcurrentWrite })
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
		store, at := storetest.NewLimits(), newFakeClock()
		processes := []*limit.RateLimiter{
			limit.NewRateLimiter(store, at.Now), limit.NewRateLimiter(store, at.Now),
			limit.NewRateLimiter(store, func() time.Time { return at.Now().Add(-skew) }),
		}
		start, accepted := at.Now(), 0
		for i := range rapid.IntRange(1, 80).Draw(t, "requests") {
			at.Advance(time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond)
			process := processes[rapid.IntRange(0, 2).Draw(t, "process")]
			most := rapid.IntRange(1, burst+1).Draw(t, "batch")
			rate := limit.Rate{PerSecond: perSecond, Burst: burst}
			taken, wait, err := process.TakeUpTo(context.Background(), "m1", rate, most)
			if err != nil || taken > most || (taken == 0) != (wait > 0) {
				t.Fatalf("%d of %d taken, wait %s, %v", taken, most, wait, err)
			}
			accepted += taken
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
