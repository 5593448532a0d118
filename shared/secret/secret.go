// Package secret caches a secret for a short time, and keeps the stale value while refreshes fail.
//
// It does not read the content. A key ring is one append-only value, so a secret needs no previous value (decision
// "key-rings"). Its invariant: after the first successful fetch, Get never fails.
package secret

import (
	"context"
	"sync"
	"time"
)

// Value is a secret as its source holds it.
type Value struct {
	// Bytes is the content; callers must not change it.
	Bytes []byte
	// Version is the source's id of this value, "" if it has none. It is not secret.
	Version string
}

// Source fetches secrets. id is a name or an ARN. An error text never contains a secret.
type Source interface {
	Fetch(ctx context.Context, id string) (Value, error)
}

// Reader reads one secret; *Cache is the one implementation that ships.
type Reader interface {
	// Get returns the value, from a cache while it is fresh.
	Get(ctx context.Context) (Value, error)
	// Refresh fetches the value even if it is fresh, for a refused token or an unknown key number. It is rate-limited.
	Refresh(ctx context.Context) (Value, error)
}

var _ Reader = (*Cache)(nil)

// fetchTimeout bounds one fetch, so that a request still has time to continue with the stale value.
const fetchTimeout = 5 * time.Second

// Cache caches one secret. It is safe for concurrent use: one caller fetches and the others wait.
type Cache struct {
	// OnRefreshFailure, if set before first use, receives the error of each refresh that failed and left the stale
	// value in use, for a log line and a counter. It must not call the cache.
	OnRefreshFailure func(error)

	source             Source
	id                 string
	ttl                time.Duration
	minRefreshInterval time.Duration
	now                func() time.Time

	mu                sync.Mutex
	value             Value
	hasValue          bool          // at least one fetch succeeded
	freshUntil        time.Time     // value needs no refresh before
	lastForcedRefresh time.Time     // start of the last forced refresh
	fetchDone         chan struct{} // closed when the running fetch ends; nil if none runs
}

// NewCache makes a cache of one secret. ttl is the time after which a value is refreshed. minRefreshInterval is the
// shortest time between two forced refreshes, and between two attempts while refreshes fail. It fetches nothing yet.
func NewCache(source Source, id string, ttl, minRefreshInterval time.Duration, now func() time.Time) *Cache {
	return &Cache{source: source, id: id, ttl: ttl, minRefreshInterval: minRefreshInterval, now: now}
}

// Get implements Reader. A failed refresh returns the stale value. An error means that no fetch has ever succeeded, or
// that ctx ended while another caller made the first fetch.
func (c *Cache) Get(ctx context.Context) (Value, error) {
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
		select {
		case <-fetchDone:
		case <-ctx.Done():
			if hasValue {
				return value, nil
			}
			return Value{}, ctx.Err()
		}
	}
}

// Refresh implements Reader. Within minRefreshInterval of the last forced refresh, and while another fetch runs, it
// does the same as Get.
func (c *Cache) Refresh(ctx context.Context) (Value, error) {
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

// fetch refreshes the value. The caller has locked mu, and fetch releases it; fetchDone makes other callers wait.
func (c *Cache) fetch(ctx context.Context) (Value, error) {
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
	value, err := c.source.Fetch(fetchCtx, c.id)
	return c.storeFetchResult(value, err)
}

// storeFetchResult stores the new value, or keeps the stale one for a short time after an error.
func (c *Cache) storeFetchResult(value Value, err error) (Value, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.value, c.hasValue, c.freshUntil = value, true, c.wallTime().Add(c.ttl)
		return value, nil
	}
	if !c.hasValue {
		return Value{}, err
	}
	c.freshUntil = c.wallTime().Add(min(c.ttl, c.minRefreshInterval))
	if c.OnRefreshFailure != nil {
		c.OnRefreshFailure(err)
	}
	return c.value, nil
}

// wallTime is the time without its monotonic part, which does not advance while a function is frozen.
func (c *Cache) wallTime() time.Time { return c.now().Round(0) }
