package secret_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/shared/secret"
)

const (
	life         = 5 * time.Minute
	refreshEvery = 30 * time.Second
)

var errDown = errors.New("source is down")

// stubSource counts its fetches and answers with their number, or with an error, after a delay.
type stubSource struct {
	mu      sync.Mutex
	fetches int
	down    bool
	delay   time.Duration
}

func (s *stubSource) Fetch(ctx context.Context, id string) (secret.Value, error) {
	s.mu.Lock()
	s.fetches++
	n, down, delay := s.fetches, s.down, s.delay
	s.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return secret.Value{}, ctx.Err()
		}
	}
	if down {
		return secret.Value{}, errDown
	}
	return secret.Value{Bytes: []byte(id + strconv.Itoa(n))}, nil
}

func (s *stubSource) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// The tests run in bubbles in which time.Now is a fake clock that moves when everyone waits.
func newCache(s *stubSource) *secret.Cache {
	return secret.NewCache(s, "key", life, refreshEvery, time.Now)
}

func wantValue(t *testing.T, get func(context.Context) (secret.Value, error), want string) {
	t.Helper()
	value, err := get(t.Context())
	if err != nil || string(value.Bytes) != want {
		t.Fatalf("got %q, %v; want %q", value.Bytes, err, want)
	}
}

func TestGetRefreshesAfterTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := newCache(&stubSource{})
		wantValue(t, cache.Get, "key1")
		time.Sleep(life - time.Nanosecond)
		wantValue(t, cache.Get, "key1")
		time.Sleep(time.Nanosecond)
		wantValue(t, cache.Get, "key2")
	})
}

func TestFirstFetchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stubSource{down: true}
		cache := newCache(s)
		cache.OnRefreshFailure = func(error) { t.Error("there is no stale value to speak of") }
		if _, err := cache.Get(t.Context()); !errors.Is(err, errDown) {
			t.Fatalf("got %v", err)
		}
		s.setDown(false)
		wantValue(t, cache.Get, "key2")
	})
}

// A failed renewal keeps the stale value, is told of, and is not tried again before refreshEvery.
func TestStaleValueIsKeptWhenRefreshFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, refreshErrors := &stubSource{}, 0
		cache := newCache(s)
		cache.OnRefreshFailure = func(err error) {
			refreshErrors++
			if !errors.Is(err, errDown) {
				t.Errorf("told of %v", err)
			}
		}
		wantValue(t, cache.Get, "key1")
		s.setDown(true)
		time.Sleep(life)
		wantValue(t, cache.Get, "key1")
		wantValue(t, cache.Get, "key1")
		if s.fetches != 2 || refreshErrors != 1 {
			t.Fatalf("%d fetches, told %d times", s.fetches, refreshErrors)
		}
		time.Sleep(24 * time.Hour)
		wantValue(t, cache.Get, "key1")
		s.setDown(false)
		time.Sleep(refreshEvery)
		wantValue(t, cache.Get, "key4")
	})
}

func TestRefreshIsRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stubSource{}
		cache := newCache(s)
		wantValue(t, cache.Get, "key1")
		wantValue(t, cache.Refresh, "key2") // fresh, and fetched all the same
		wantValue(t, cache.Refresh, "key2")
		time.Sleep(refreshEvery - time.Nanosecond)
		wantValue(t, cache.Refresh, "key2")
		time.Sleep(time.Nanosecond)
		s.setDown(true)
		wantValue(t, cache.Refresh, "key2") // fails, and keeps what it has
		wantValue(t, cache.Refresh, "key2")
		if s.fetches != 3 {
			t.Fatalf("%d fetches", s.fetches)
		}
	})
}

func TestRefreshFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := newCache(&stubSource{})
		wantValue(t, cache.Refresh, "key1")
		wantValue(t, cache.Get, "key1")
	})
}

func TestConcurrentCallersShareOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stubSource{delay: time.Second}
		cache := newCache(s)
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				get := cache.Get
				if i%2 == 1 {
					get = cache.Refresh
				}
				value, err := get(t.Context())
				if err != nil || string(value.Bytes) != "key1" {
					t.Errorf("got %q, %v", value.Bytes, err)
				}
			})
		}
		group.Wait()
		if s.fetches != 1 {
			t.Fatalf("%d fetches", s.fetches)
		}
	})
}

// Who waits for another's fetch gives up with its own context: with the stale value where there is one.
func TestWaitingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stubSource{delay: 3 * time.Second}
		cache := newCache(s)
		go func() { _, _ = cache.Get(context.Background()) }()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := cache.Get(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		time.Sleep(life + 3*time.Second)
		go func() { _, _ = cache.Get(context.Background()) }()
		synctest.Wait()
		again, cancelAgain := context.WithTimeout(t.Context(), time.Second)
		defer cancelAgain()
		value, err := cache.Get(again)
		if err != nil || string(value.Bytes) != "key1" {
			t.Fatalf("got %q, %v", value.Bytes, err)
		}
		time.Sleep(5 * time.Second)
	})
}

// A fetch whose caller gave up leaves the next in line to fetch; a source that hangs is given up after five seconds.
func TestFirstCallerIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stubSource{delay: 2 * time.Second}
		cache := newCache(s)
		firstCaller, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() { _, _ = cache.Get(firstCaller) }()
		synctest.Wait()
		wantValue(t, cache.Get, "key2")

		s.mu.Lock()
		s.delay = time.Hour
		s.mu.Unlock()
		time.Sleep(life)
		start := time.Now()
		wantValue(t, cache.Get, "key2")
		if waited := time.Since(start); waited != 5*time.Second {
			t.Fatalf("waited %s", waited)
		}
	})
}

// A clock whose monotonic part stood still while the function was frozen still ends the value's life.
func TestTTLUsesTheWallClock(t *testing.T) {
	now := time.Now()
	cache := secret.NewCache(&stubSource{}, "key", life, refreshEvery, func() time.Time { return now })
	wantValue(t, cache.Get, "key1")
	now = time.Date(now.Year()+1, now.Month(), now.Day(), 0, 0, 0, 0, time.UTC) // no monotonic part
	wantValue(t, cache.Get, "key2")
}

// panickingSource is a source that panics once.
type panickingSource struct{ calls int }

func (p *panickingSource) Fetch(context.Context, string) (secret.Value, error) {
	p.calls++
	if p.calls == 1 {
		panic("a mistake of the source")
	}
	return secret.Value{Bytes: []byte("ok")}, nil
}

func TestPanicReleasesWaitingCallers(t *testing.T) {
	cache := secret.NewCache(&panickingSource{}, "key", life, refreshEvery, time.Now)
	func() {
		defer func() { _ = recover() }()
		_, _ = cache.Get(t.Context())
	}()
	wantValue(t, cache.Get, "ok")
}
