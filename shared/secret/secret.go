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
	// Current is the secret's bytes; callers must not change them.
	Current []byte
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
	// OnStale, if set before first use, is told of each failed renewal that left the stale value in use: for a log
	// line and a counter. It must not call the cache.
	OnStale func(error)

	source       Source
	id           string
	life         time.Duration
	refreshEvery time.Duration
	now          func() time.Time

	mu        sync.Mutex
	value     Value
	held      bool          // value was fetched at least once
	freshTill time.Time     // value needs no renewal before
	refreshed time.Time     // start of the last forced renewal
	flight    chan struct{} // closed when the fetch under way ends; nil if there is none
}

// New makes a cache of one secret. life is how long a value is used before it is renewed; refreshEvery is the least time
// between two forced renewals, and between two attempts while renewals fail. Nothing is fetched yet.
func New(source Source, id string, life, refreshEvery time.Duration, now func() time.Time) *Cache {
	return &Cache{source: source, id: id, life: life, refreshEvery: refreshEvery, now: now}
}

// Get returns the value, renewed where its life is over. A renewal that fails returns the stale value; an error comes
// only where no fetch has ever succeeded, or ctx ended while another caller was making the first one.
func (c *Cache) Get(ctx context.Context) (Value, error) {
	for {
		c.mu.Lock()
		if c.held && c.wall().Before(c.freshTill) {
			defer c.mu.Unlock()
			return c.value, nil
		}
		flight := c.flight
		if flight == nil {
			return c.fetch(ctx)
		}
		value, held := c.value, c.held
		c.mu.Unlock()
		select {
		case <-flight:
		case <-ctx.Done():
			if held {
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
	now := c.wall()
	if c.flight != nil || (!c.refreshed.IsZero() && now.Before(c.refreshed.Add(c.refreshEvery))) {
		c.mu.Unlock()
		return c.Get(ctx)
	}
	c.refreshed = now
	return c.fetch(ctx)
}

// fetch renews the value. It is called with mu held and releases it; meanwhile flight tells others to wait.
func (c *Cache) fetch(ctx context.Context) (Value, error) {
	flight := make(chan struct{})
	c.flight = flight
	c.mu.Unlock()
	defer func() { // deferred, so that a source that panics leaves nobody waiting
		c.mu.Lock()
		defer c.mu.Unlock()
		c.flight = nil
		close(flight)
	}()

	limited, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	value, err := c.source.Fetch(limited, c.id)
	return c.keep(value, err)
}

// keep stores what a fetch gave: the new value, or, after an error, the stale one for a while longer.
func (c *Cache) keep(value Value, err error) (Value, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.value, c.held, c.freshTill = value, true, c.wall().Add(c.life)
		return value, nil
	}
	if !c.held {
		return Value{}, err
	}
	c.freshTill = c.wall().Add(min(c.life, c.refreshEvery))
	if c.OnStale != nil {
		c.OnStale(err)
	}
	return c.value, nil
}

// wall is the time without its monotonic part: that clock stands still while a function is frozen.
func (c *Cache) wall() time.Time { return c.now().Round(0) }
