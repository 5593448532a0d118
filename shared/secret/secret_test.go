package secret_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/shared/pause"
	"mobilegateway/shared/secret"
)

const (
	life         = 5 * time.Minute
	refreshEvery = 30 * time.Second
)

var errDown = errors.New("source is down")

// stubSource returns the number of the fetch, or an error, after a delay.
type stubSource struct {
	mu      sync.Mutex
	fetches int
	down    bool
	delay   time.Duration
}

func (s *stubSource) Fetch(ctx context.Context, id string) ([]byte, error) {
	s.mu.Lock()
	s.fetches++
	n, down, delay := s.fetches, s.down, s.delay
	s.mu.Unlock()
	if err := pause.For(ctx, delay); err != nil {
		return nil, err
	}
	if down {
		return nil, errDown
	}
	return []byte(id + strconv.Itoa(n)), nil
}

func (s *stubSource) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func newCache(s secret.Source) *secret.Cache {
	return secret.NewCache(s, "key", life, refreshEvery, time.Now)
}

// inBubble runs a test with synctest: time.Now is a fake clock that advances when all goroutines wait.
func inBubble(t *testing.T, s *stubSource, run func(t *testing.T, cache *secret.Cache)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { run(t, newCache(s)) })
}

func wantValue(t *testing.T, get func(context.Context) ([]byte, error), want string) {
	t.Helper()
	value, err := get(t.Context())
	if err != nil || string(value) != want {
		t.Fatalf("got %q, %v; want %q", value, err, want)
	}
}

func TestGetRefreshesAfterTTL(t *testing.T) {
	inBubble(t, &stubSource{}, func(t *testing.T, cache *secret.Cache) {
		wantValue(t, cache.Get, "key1")
		time.Sleep(life - time.Nanosecond)
		wantValue(t, cache.Get, "key1")
		time.Sleep(time.Nanosecond)
		wantValue(t, cache.Get, "key2")
	})
}

func TestFirstFetchFails(t *testing.T) {
	s := &stubSource{down: true}
	inBubble(t, s, func(t *testing.T, cache *secret.Cache) {
		if _, err := cache.Get(t.Context()); !errors.Is(err, errDown) {
			t.Fatalf("got %v", err)
		}
		s.setDown(false)
		wantValue(t, cache.Get, "key2")
	})
}

// A failed refresh keeps the stale value, and is not repeated before refreshEvery.
func TestStaleValueIsKeptWhenRefreshFails(t *testing.T) {
	s := &stubSource{}
	inBubble(t, s, func(t *testing.T, cache *secret.Cache) {
		wantValue(t, cache.Get, "key1")
		s.setDown(true)
		time.Sleep(life)
		wantValue(t, cache.Get, "key1")
		wantValue(t, cache.Get, "key1")
		if s.fetches != 2 {
			t.Fatalf("%d fetches, want 2", s.fetches)
		}
		time.Sleep(24 * time.Hour)
		wantValue(t, cache.Get, "key1")
		s.setDown(false)
		time.Sleep(refreshEvery)
		wantValue(t, cache.Get, "key4")
	})
}

func TestRefreshIsRateLimited(t *testing.T) {
	s := &stubSource{}
	inBubble(t, s, func(t *testing.T, cache *secret.Cache) {
		wantValue(t, cache.Get, "key1")
		wantValue(t, cache.Refresh, "key2") // fetches although the value is fresh
		wantValue(t, cache.Refresh, "key2")
		time.Sleep(refreshEvery - time.Nanosecond)
		wantValue(t, cache.Refresh, "key2")
		time.Sleep(time.Nanosecond)
		s.setDown(true)
		wantValue(t, cache.Refresh, "key2") // fails, and keeps the value
		wantValue(t, cache.Refresh, "key2")
		if s.fetches != 3 {
			t.Fatalf("%d fetches are too many", s.fetches)
		}
	})
}

func TestRefreshFirst(t *testing.T) {
	inBubble(t, &stubSource{}, func(t *testing.T, cache *secret.Cache) {
		wantValue(t, cache.Refresh, "key1")
		wantValue(t, cache.Get, "key1")
	})
}

func TestConcurrentCallersShareOneFetch(t *testing.T) {
	s := &stubSource{delay: time.Second}
	inBubble(t, s, func(t *testing.T, cache *secret.Cache) {
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				get := cache.Get
				if i%2 == 1 {
					get = cache.Refresh
				}
				if value, err := get(t.Context()); err != nil || string(value) != "key1" {
					t.Errorf("got %q, %v", value, err)
				}
			})
		}
		group.Wait()
		if s.fetches != 1 {
			t.Fatalf("%d fetches are too many", s.fetches)
		}
	})
}

// A caller that waits for another's fetch returns when its own context ends: with the stale value if there is one.
func TestWaitingEndsWithItsContext(t *testing.T) {
	s := &stubSource{delay: 3 * time.Second}
	inBubble(t, s, func(t *testing.T, cache *secret.Cache) {
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
		wantValue(t, func(context.Context) ([]byte, error) { return cache.Get(again) }, "key1")
		time.Sleep(5 * time.Second)
	})
}

// When the caller of a fetch is cancelled, the next caller fetches. A fetch ends after five seconds.
func TestFirstCallerIsCancelled(t *testing.T) {
	s := &stubSource{delay: 2 * time.Second}
	inBubble(t, s, func(t *testing.T, cache *secret.Cache) {
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
			t.Fatalf("a source without a response held the caller for %s, want 5s", waited)
		}
	})
}

// The TTL ends although the monotonic clock stopped while the function was frozen.
func TestTTLUsesTheWallClock(t *testing.T) {
	now := time.Now()
	cache := secret.NewCache(&stubSource{}, "key", life, refreshEvery, func() time.Time { return now })
	wantValue(t, cache.Get, "key1")
	now = time.Date(now.Year()+1, now.Month(), now.Day(), 0, 0, 0, 0, time.UTC) // no monotonic part
	wantValue(t, cache.Get, "key2")
}

// panickingSource is a source that panics once.
type panickingSource struct{ calls int }

func (p *panickingSource) Fetch(context.Context, string) ([]byte, error) {
	p.calls++
	if p.calls == 1 {
		panic("a mistake of the source")
	}
	return []byte("ok"), nil
}

func TestPanicReleasesWaitingCallers(t *testing.T) {
	cache := newCache(&panickingSource{})
	func() {
		defer func() { _ = recover() }()
		_, _ = cache.Get(t.Context())
	}()
	wantValue(t, cache.Get, "ok")
}
