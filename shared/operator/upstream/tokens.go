package upstream

import (
	"context"
	"sync"
	"time"

	"mobilegateway/shared/pause"
)

// TokenExchange gets an access token from a platform. lifetime is how long it is valid from now.
type TokenExchange func(ctx context.Context) (token string, lifetime time.Duration, err error)

// defaultMargin is how long before its end a token is renewed: the longest time that a call takes after it got it.
const defaultMargin = 15 * time.Second

// Tokens caches access tokens. For one key it makes one exchange at a time. It is safe for concurrent use.
type Tokens struct {
	now   func() time.Time
	await func(ctx context.Context, done <-chan struct{}) error

	mu      sync.Mutex
	cached  map[string]cachedToken
	pending map[string]chan struct{} // closed at the end of the exchange
}

type cachedToken struct {
	value string
	until time.Time
}

// NewTokens makes a cache. await waits for the exchange of another goroutine; nil for pause.Until.
func NewTokens(now func() time.Time, await func(context.Context, <-chan struct{}) error) *Tokens {
	if await == nil {
		await = pause.Until
	}
	return &Tokens{now: now, await: await, cached: map[string]cachedToken{}, pending: map[string]chan struct{}{}}
}

// Get returns the token of a key: the cached one until a margin before its end, else a new one. The margin is at most
// half of the token's life. The error is that of the exchange, or of the context.
func (t *Tokens) Get(
	ctx context.Context, key string, margin time.Duration, exchange TokenExchange,
) (string, error) {
	for {
		t.mu.Lock()
		if found := t.cached[key]; t.now().Before(found.until) {
			t.mu.Unlock()
			return found.value, nil
		}
		done, isPending := t.pending[key]
		if !isPending {
			done = make(chan struct{})
			t.pending[key] = done
			t.mu.Unlock()
			return t.exchange(ctx, key, margin, done, exchange)
		}
		t.mu.Unlock()
		if err := t.await(ctx, done); err != nil {
			return "", err
		}
	}
}

// exchange makes the exchange of a key and caches its token. A life is counted from before the exchange.
func (t *Tokens) exchange(
	ctx context.Context, key string, margin time.Duration, done chan struct{}, exchange TokenExchange,
) (value string, err error) {
	start := t.now().Round(0) // the monotonic clock does not advance while a function is frozen
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.pending, key)
		close(done)
	}()
	value, lifetime, err := exchange(ctx)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cached[key] = cachedToken{value, start.Add(lifetime - min(margin, lifetime/2))}
	return value, nil
}

// Drop forgets a token that the platform has refused, unless the key has a newer one already.
func (t *Tokens) Drop(key, value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cached[key].value == value {
		delete(t.cached, key)
	}
}
