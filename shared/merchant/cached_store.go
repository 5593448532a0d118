package merchant

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"mobilegateway/shared/fault"
)

// Sizes of the cache, in profiles. Unknown ids have separate space, so that guessed ids cannot evict known merchants.
const (
	maxCachedProfiles = 1024
	maxCachedMisses   = 256
)

// freshReadInterval is the shortest time between two reads of a merchant's profile that only unknown tokens cause.
const freshReadInterval = 5 * time.Second

// CachedStore is a Store that caches the results of another one for a short time. It is safe for concurrent use.
// Delivery reads profiles through it; an Authenticator adds a rule for when to refresh.
type CachedStore struct {
	store Store
	ttl   time.Duration
	now   func() time.Time

	mutex    sync.Mutex
	profiles map[string]cacheEntry
	missing  map[string]cacheEntry
}

// cacheEntry is one result of the store; profile is nil if there is none.
type cacheEntry struct {
	profile *Profile
	readAt  time.Time
	// freshReadAt is when an unknown token last caused a read, zero for never.
	freshReadAt time.Time
}

// NewCachedStore makes a cache over a store. A change of a profile takes effect after ttl at the latest.
func NewCachedStore(store Store, ttl time.Duration, now func() time.Time) *CachedStore {
	profiles, missing := map[string]cacheEntry{}, map[string]cacheEntry{}
	return &CachedStore{store: store, ttl: ttl, now: now, profiles: profiles, missing: missing}
}

// Profile implements Store with at most one read.
func (c *CachedStore) Profile(ctx context.Context, id string) (*Profile, error) {
	if profile, found := c.cached(id); found {
		return profile, nil
	}
	return c.refresh(ctx, id)
}

// findProfile returns a merchant's profile with at most one read, and whether it is from the cache. A verified token of
// a later generation proves that the cached profile is stale.
func (c *CachedStore) findProfile(
	ctx context.Context, id string, minGeneration int,
) (profile *Profile, isCached bool, err error) {
	profile, isCached = c.cached(id)
	cachedGeneration := 0
	if profile != nil {
		cachedGeneration = profile.TokenGeneration
	}
	if !isCached || cachedGeneration < minGeneration {
		isCached = false
		if profile, err = c.refresh(ctx, id); err != nil {
			return nil, false, fault.NewInternal(err)
		}
	}
	if profile == nil {
		return nil, false, invalidCredentials(errUnknownMerchant)
	}
	return profile, isCached, nil
}

// cached returns the cached result for an id, and false if there is no fresh one.
func (c *CachedStore) cached(id string) (profile *Profile, found bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, entries := range []map[string]cacheEntry{c.profiles, c.missing} {
		if entry, exists := entries[id]; exists && c.isFresh(entry) {
			return entry.profile, true
		}
	}
	return nil, false
}

// refresh reads the store and caches the result. The age counts from before the read, so that it is never
// underestimated.
func (c *CachedStore) refresh(ctx context.Context, id string) (*Profile, error) {
	readAt := c.now().Round(0)
	profile, err := c.store.Profile(ctx, id)
	if err != nil {
		return nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	freshReadAt := c.profiles[id].freshReadAt
	delete(c.profiles, id)
	delete(c.missing, id)
	entries, limit := c.profiles, maxCachedProfiles
	if profile == nil {
		entries, limit = c.missing, maxCachedMisses
	}
	if len(entries) >= limit {
		c.evict(entries)
	}
	entries[id] = cacheEntry{profile, readAt, freshReadAt}
	return profile, nil
}

// claimFreshRead reports whether an unknown token may cause a read of a cached merchant's profile now. It does so at
// most once in freshReadInterval. No read happens under the lock, so tokens that the profile knows do not wait.
func (c *CachedStore) claimFreshRead(id string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	entry, exists := c.profiles[id]
	now := c.now().Round(0)
	if age := now.Sub(entry.freshReadAt); !exists || age >= 0 && age < freshReadInterval {
		return false
	}
	entry.freshReadAt = now
	c.profiles[id] = entry
	return true
}

// evict drops the stale entries, or the oldest one if all are fresh.
func (c *CachedStore) evict(entries map[string]cacheEntry) {
	sizeBefore := len(entries)
	maps.DeleteFunc(entries, func(_ string, entry cacheEntry) bool { return !c.isFresh(entry) })
	if len(entries) == sizeBefore {
		delete(entries, slices.MinFunc(slices.Collect(maps.Keys(entries)), func(a, b string) int {
			return entries[a].readAt.Compare(entries[b].readAt)
		}))
	}
}

// isFresh compares wall-clock times, because the monotonic clock stops while a function is frozen.
func (c *CachedStore) isFresh(entry cacheEntry) bool {
	age := c.now().Round(0).Sub(entry.readAt)
	return age >= 0 && age < c.ttl
}
