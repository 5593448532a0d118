package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// exchanges counts its exchanges, each of which takes a second.
type exchanges struct {
	count    atomic.Int32
	lifetime time.Duration
	failures atomic.Int32 // of the next exchanges
}

var errExchange = errors.New("the platform refused the credentials")

func (x *exchanges) exchange(ctx context.Context) (string, time.Duration, error) {
	number := x.count.Add(1)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return "", 0, ctx.Err()
	}
	if x.failures.Add(-1) >= 0 {
		return "", 0, errExchange
	}
	return fmt.Sprintf("token-%d", number), x.lifetime, nil
}

// inTokenBubble runs a test with a fake clock. get gets the token of the key "a".
func inTokenBubble(
	t *testing.T, x *exchanges, run func(t *testing.T, tokens *Tokens, get func(context.Context) (string, error)),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tokens := NewTokens(time.Now, nil)
		run(t, tokens, func(ctx context.Context) (string, error) {
			return tokens.Get(ctx, "a", defaultMargin, x.exchange)
		})
	})
}

// wantToken compares the token and the number of exchanges so far.
func wantToken(t *testing.T, x *exchanges, token string, err error, want string, exchanged int32) {
	t.Helper()
	if err != nil || token != want || x.count.Load() != exchanged {
		t.Fatalf("token %q, %v after %d exchanges; want %q after %d", token, err, x.count.Load(), want, exchanged)
	}
}

// getTogether calls get at once from many goroutines, and counts the results by token or error.
func getTogether(ctx context.Context, callers int, get func(context.Context) (string, error)) map[string]int {
	var group sync.WaitGroup
	var mutex sync.Mutex
	results := map[string]int{}
	for range callers {
		group.Go(func() {
			token, err := get(ctx)
			if err != nil {
				token = err.Error()
			}
			mutex.Lock()
			defer mutex.Unlock()
			results[token]++
		})
	}
	group.Wait()
	return results
}

// A life counts from the start of the exchange. A token is renewed a margin before its end, at most half of its life.
func TestTokenLives(t *testing.T) {
	for _, c := range []struct {
		lifetime, margin time.Duration
		idle             time.Duration // after the end of the exchange, which took a second
		exchanged        int32
	}{
		{time.Hour, defaultMargin, time.Hour - 16*time.Second - time.Millisecond, 1},
		{time.Hour, defaultMargin, time.Hour - 16*time.Second, 2},
		{time.Hour, 10 * time.Minute, 50*time.Minute - time.Second - time.Millisecond, 1},
		{time.Hour, 10 * time.Minute, 50*time.Minute - time.Second, 2},
		{20 * time.Minute, 10 * time.Minute, 10*time.Minute - time.Second - time.Millisecond, 1},
		{20 * time.Minute, 10 * time.Minute, 10*time.Minute - time.Second, 2},
		{10 * time.Minute, 10 * time.Minute, 5*time.Minute - time.Second - time.Millisecond, 1}, // half of the life
		{10 * time.Minute, 10 * time.Minute, 5*time.Minute - time.Second, 2},
		{time.Minute, defaultMargin, 43 * time.Second, 1},
		{time.Minute, defaultMargin, 44 * time.Second, 2},
		{90 * 24 * time.Hour, defaultMargin, 89 * 24 * time.Hour, 1},
		{20 * time.Second, defaultMargin, 8 * time.Second, 1}, // half of the life
		{20 * time.Second, defaultMargin, 9 * time.Second, 2},
		{2 * time.Second, defaultMargin, 0, 2}, // the exchange took half of the life
		{0, defaultMargin, 0, 2},
		{-time.Second, defaultMargin, 0, 2},
	} {
		x := &exchanges{lifetime: c.lifetime}
		synctest.Test(t, func(t *testing.T) {
			tokens := NewTokens(time.Now, nil)
			token, err := tokens.Get(t.Context(), "a", c.margin, x.exchange)
			wantToken(t, x, token, err, "token-1", 1)
			time.Sleep(c.idle)
			token, err = tokens.Get(t.Context(), "a", c.margin, x.exchange)
			wantToken(t, x, token, err, fmt.Sprintf("token-%d", c.exchanged), c.exchanged)
		})
	}
}

func TestManyCallersShareOneExchange(t *testing.T) {
	x := &exchanges{lifetime: time.Hour}
	inTokenBubble(t, x, func(t *testing.T, tokens *Tokens, get func(context.Context) (string, error)) {
		start := time.Now()
		other := &exchanges{lifetime: time.Hour}
		go func() { _, _ = tokens.Get(t.Context(), "b", defaultMargin, other.exchange) }()
		results := getTogether(t.Context(), 50, get)
		if results["token-1"] != 50 || x.count.Load() != 1 || other.count.Load() != 1 {
			t.Errorf("%v after %d exchanges, %d of another key", results, x.count.Load(), other.count.Load())
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("two keys took %s, want concurrent exchanges", took)
		}
	})
}

// After a failed exchange the next caller makes its own. The first caller gets the error.
func TestFailedExchange(t *testing.T) {
	x := &exchanges{lifetime: time.Hour}
	x.failures.Store(1)
	inTokenBubble(t, x, func(t *testing.T, _ *Tokens, get func(context.Context) (string, error)) {
		results := getTogether(t.Context(), 10, get)
		if results[errExchange.Error()] != 1 || results["token-2"] != 9 || x.count.Load() != 2 {
			t.Errorf("%v after %d exchanges; want one error, and nine times the second token", results, x.count.Load())
		}
	})
}

// A caller waits no longer than its own context, and the exchange of another caller continues.
func TestWaitingCallerEnds(t *testing.T) {
	x := &exchanges{lifetime: time.Hour}
	inTokenBubble(t, x, func(t *testing.T, _ *Tokens, get func(context.Context) (string, error)) {
		go func() { _, _ = get(t.Context()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := get(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 100*time.Millisecond {
			t.Errorf("%v after %s, want the deadline after 100ms", err, time.Since(start))
		}
		token, err := get(t.Context())
		wantToken(t, x, token, err, "token-1", 1)
	})
}

// The context of the caller that makes the exchange ends: another caller makes the next one.
func TestExchangingCallerEnds(t *testing.T) {
	x := &exchanges{lifetime: time.Hour}
	inTokenBubble(t, x, func(t *testing.T, _ *Tokens, get func(context.Context) (string, error)) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		go func() { _, _ = get(ctx) }()
		synctest.Wait()
		token, err := get(t.Context())
		wantToken(t, x, token, err, "token-2", 2)
	})
}

// A panic in an exchange leaves no caller waiting.
func TestPanickingExchange(t *testing.T) {
	tokens := NewTokens(time.Now, nil)
	func() {
		defer func() { _ = recover() }()
		_, _ = tokens.Get(t.Context(), "a", defaultMargin, func(context.Context) (string, time.Duration, error) {
			panic("x")
		})
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	token, err := tokens.Get(ctx, "a", defaultMargin, func(context.Context) (string, time.Duration, error) {
		return "next", time.Hour, nil
	})
	if err != nil || token != "next" {
		t.Errorf("token %q, %v", token, err)
	}
}

// Drop forgets only the token that was refused: another caller may have got a newer one meanwhile.
func TestDrop(t *testing.T) {
	x := &exchanges{lifetime: time.Hour}
	inTokenBubble(t, x, func(t *testing.T, tokens *Tokens, get func(context.Context) (string, error)) {
		token, err := get(t.Context())
		wantToken(t, x, token, err, "token-1", 1)
		tokens.Drop("a", "token-0")
		tokens.Drop("b", "token-1")
		token, err = get(t.Context())
		wantToken(t, x, token, err, "token-1", 1)
		tokens.Drop("a", "token-1")
		token, err = get(t.Context())
		wantToken(t, x, token, err, "token-2", 2)
		tokens.Drop("a", "token-1") // a second call with the old token was refused, too
		token, err = get(t.Context())
		wantToken(t, x, token, err, "token-2", 2)
	})
}

// await replaces the wait, so that a simulation can advance its own clock.
func TestAwait(t *testing.T) {
	awaitErr := errors.New("the simulation ended")
	var waited int
	tokens := NewTokens(time.Now, func(context.Context, <-chan struct{}) error {
		waited++
		return awaitErr
	})
	_, err := tokens.Get(t.Context(), "a", defaultMargin, func(ctx context.Context) (string, time.Duration, error) {
		_, err := tokens.Get(ctx, "a", defaultMargin, nil) // the exchange is pending
		return "", 0, err
	})
	if !errors.Is(err, awaitErr) || waited != 1 {
		t.Errorf("%v after %d waits, want the error of await", err, waited)
	}
}

// The monotonic clock does not advance while a function is frozen, so lives are measured by the wall clock.
func TestTokenLivesUseTheWallClock(t *testing.T) {
	now := time.Now()
	tokens := NewTokens(func() time.Time { return now }, nil)
	x := &exchanges{}
	for number, want := range []string{"token-1", "token-1", "token-2"} {
		token, err := tokens.Get(t.Context(), "a", defaultMargin, func(context.Context) (string, time.Duration, error) {
			return fmt.Sprintf("token-%d", x.count.Add(1)), time.Hour, nil
		})
		wantToken(t, x, token, err, want, x.count.Load())
		if until := tokens.cached["a"].until; until != until.Round(0) {
			t.Errorf("step %d: the end of the life has a monotonic time", number)
		}
		if number == 1 {
			now = now.Round(0).Add(time.Hour)
		}
	}
}
