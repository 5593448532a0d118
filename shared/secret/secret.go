// Package secret keeps a secret at hand: fetched once, kept for a short life, and kept longer where a renewal fails.
//
// It knows nothing of what a secret contains. Key rings live in one value (append-only), so a secret has one current
// value and no previous one (decision "key-rings"). The invariant: once a value was fetched, Get never fails.
package secret

import (
	"context"
	"sync"
	"time"
)

// Value is a secret as its source holds it.
type Value struct {
	// Bytes is the secret's bytes; callers must not change them.
	Bytes []byte
	// Version is the source's id of this value, "" if it has none. It is no secret.
	Version string
}

// Source fetches secrets. id is a name or an ARN. An error text never holds a secret.
type Source interface {
	Fetch(ctx context.Context, id string) (Value, error)
}

// fetchTimeout bounds one fetch, so that a source that hangs leaves a request time to go on with the stale value.
const fetchTimeout = 5 * time.Second

// Cache holds one secret. It is safe for concurrent use; of concurrent callers one fetches and the others wait.
type Cache struct {
	// OnRefreshFailure, if set before first use, is told of each failed renewal that left the stale value in use: for a log
	// line and a counter. It must not call the cache.
	OnRefreshFailure func(error)

	source             Source
	id                 string
	ttl                time.Duration
	minRefreshInterval time.Duration
	now                func() time.Time

	mu                sync.Mutex
	value             Value
	hasValue          bool          // value was fetched at least once
	freshUntil        time.Time     // value needs no renewal before
	lastForcedRefresh time.Time     // start of the last forced renewal
	fetchDone         chan struct{} // closed when the fetch under way ends; nil if there is none
}

// NewCache makes a cache of one secret. life is how long a value is used before it is renewed; refreshEvery is the least time
// between two forced renewals, and between two attempts while renewals fail. Nothing is fetched yet.
func NewCache(source Source, id string, ttl, minRefreshInterval time.Duration, now func() time.Time) *Cache {
	return &Cache{source: source, id: id, ttl: ttl, minRefreshInterval: minRefreshInterval, now: now}
}

// Get returns the value, renewed where its life is over. A renewal that fails returns the stale value; an error comes
// only where no fetch has ever succeeded, or ctx ended while another caller was making the first one.
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

// Refresh fetches the value even if it is fresh: for a token that was refused, or a key number that is not known. It is
// rate-limited: within refreshEvery of the last forced renewal, and while another fetch is under way, it does what Get
// does.
func (c *Cache) Refresh(ctx context.Context) (Value, error) {
	c.mu.Lock()
	now := c.wallTime()
	if c.fetchDone != nil || (!c.lastForcedRefresh.IsZero() && now.Before(c.lastForcedRefresh.Add(c.minRefreshInterval))) {
		c.mu.Unlock()
		return c.Get(ctx)
	}
	c.lastForcedRefresh = now
	return c.fetch(ctx)
}

// fetch renews the value. It is called with mu held and releases it; meanwhile flight tells others to wait.
func (c *Cache) fetch(ctx context.Context) (Value, error) {
	fetchDone := make(chan struct{})
	c.fetchDone = fetchDone
	c.mu.Unlock()
	defer func() { // deferred, so that a source that panics leaves nobody waiting
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

// storeFetchResult stores what a fetch gave: the new value, or, after an error, the stale one for a while longer.
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

// wallTime is the time without its monotonic part: that clock stands still while a function is frozen.
func (c *Cache) wallTime() time.Time { return c.now().Round(0) }
