// Package secret caches a secret for a short time, and keeps the stale value while refreshes fail.
//
// It does not read the content. A key ring is one append-only value, so a secret needs no previous value (decision
// "key-rings"). Its invariant: after the first successful fetch, Get never fails.
package secret

import (
	"context"
	"sync"
	"time"

	"mobilegateway/shared/pause"
)

// Source fetches secrets. id is a name or an ARN. Callers must not change the content. An error text never contains a
// secret.
type Source interface {
	Fetch(ctx context.Context, id string) ([]byte, error)
}

// Reader reads one secret. Callers must not change the content.
type Reader interface {
	// Get returns the value, from a cache while it is fresh.
	Get(ctx context.Context) ([]byte, error)
	// Refresh fetches the value even if it is fresh, for a refused token or an unknown key number. It is rate-limited.
	Refresh(ctx context.Context) ([]byte, error)
	// FetchedAt returns when the last fetch that succeeded began; zero if the value comes from no cache.
	FetchedAt() time.Time
}

// Static is a secret that never changes.
type Static []byte

// Get implements Reader.
func (s Static) Get(context.Context) ([]byte, error) { return s, nil }

// Refresh implements Reader.
func (s Static) Refresh(context.Context) ([]byte, error) { return s, nil }

// FetchedAt implements Reader.
func (s Static) FetchedAt() time.Time { return time.Time{} }

// fetchTimeout bounds one fetch, so that a request still has time to continue with the stale value.
const fetchTimeout = 5 * time.Second

// Cache caches one secret. It is safe for concurrent use: one caller fetches and the others wait.
type Cache struct {
	// Await waits for the fetch of another caller; NewCache sets pause.Until.
	Await func(ctx context.Context, done <-chan struct{}) error

	source             Source
	id                 string
	ttl                time.Duration
	minRefreshInterval time.Duration
	now                func() time.Time

	mu                sync.Mutex
	value             []byte
	hasValue          bool          // at least one fetch succeeded
	fetchedAt         time.Time     // start of the last fetch that succeeded
	freshUntil        time.Time     // value needs no refresh before
	lastForcedRefresh time.Time     // start of the last forced refresh
	fetchDone         chan struct{} // closed when the running fetch ends; nil if none runs
}

// NewCache makes a cache of one secret. ttl is the time after which a value is refreshed. minRefreshInterval is the
// shortest time between two forced refreshes, and between two attempts while refreshes fail. It fetches nothing yet.
func NewCache(source Source, id string, ttl, minRefreshInterval time.Duration, now func() time.Time) *Cache {
	return &Cache{
		Await: pause.Until, source: source, id: id, ttl: ttl, minRefreshInterval: minRefreshInterval, now: now,
	}
}

// Get implements Reader. A failed refresh returns the stale value. An error means that no fetch has ever succeeded, or
// that ctx ended while another caller made the first fetch.
func (c *Cache) Get(ctx context.Context) ([]byte, error) {
	for {
		c.mu.Lock()
		if c.hasValue && c.wallTime().Before(c.freshUntil) {
			defer c.mu.Unlock()
			return c.value, nil
		}
		fetchDone := c.fetchDone
		if fetchDone == nil {
			return c.fetch(ctx)
		}
		value, hasValue := c.value, c.hasValue
		c.mu.Unlock()
		switch err := c.Await(ctx, fetchDone); {
		case err != nil && hasValue:
			return value, nil
		case err != nil:
			return nil, err
		}
	}
}

// Refresh implements Reader. Within minRefreshInterval of the last forced refresh, and while another fetch runs, it
// does the same as Get.
func (c *Cache) Refresh(ctx context.Context) ([]byte, error) {
	c.mu.Lock()
	now := c.wallTime()
	tooEarly := !c.lastForcedRefresh.IsZero() && now.Before(c.lastForcedRefresh.Add(c.minRefreshInterval))
	if c.fetchDone != nil || tooEarly {
		c.mu.Unlock()
		return c.Get(ctx)
	}
	c.lastForcedRefresh = now
	return c.fetch(ctx)
}

// FetchedAt implements Reader.
func (c *Cache) FetchedAt() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fetchedAt
}

// fetch refreshes the value. The caller has locked mu, and fetch releases it; fetchDone makes other callers wait.
func (c *Cache) fetch(ctx context.Context) ([]byte, error) {
	fetchDone := make(chan struct{})
	c.fetchDone = fetchDone
	c.mu.Unlock()
	defer func() { // deferred: after a panic, other callers must not wait without limit
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fetchDone = nil
		close(fetchDone)
	}()

	fetchCtx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	startedAt := c.wallTime()
	value, err := c.source.Fetch(fetchCtx, c.id)
	return c.storeFetchResult(value, err, startedAt)
}

// storeFetchResult stores the new value, or keeps the stale one for a short time after an error.
func (c *Cache) storeFetchResult(value []byte, err error, startedAt time.Time) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.value, c.hasValue, c.fetchedAt = value, true, startedAt
		c.freshUntil = c.wallTime().Add(c.ttl)
		return value, nil
	}
	if !c.hasValue {
		return nil, err
	}
	c.freshUntil = c.wallTime().Add(min(c.ttl, c.minRefreshInterval))
	return c.value, nil
}

// wallTime is the time without its monotonic part, which does not advance while a function is frozen.
func (c *Cache) wallTime() time.Time { return c.now().Round(0) }
