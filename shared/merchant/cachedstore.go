package merchant

import (
	"context"
	"time"
)

// CachedStore is a Store that remembers what another one said, for a short life. Those who deliver read profiles through it;
// those who authenticate have their own rules for when to ask anew.
type CachedStore struct {
	store Store
	cache *profileCache
	now   func() time.Time
}

var _ Store = (*CachedStore)(nil)

// NewCachedStore makes a Cached over a store. life bounds how late a change of a profile shows.
func NewCachedStore(store Store, ttl time.Duration, now func() time.Time) *CachedStore {
	return &CachedStore{store: store, cache: newProfileCache(ttl, now), now: now}
}

// Profile implements Store: at most one read.
func (c *CachedStore) Profile(ctx context.Context, id string) (*Profile, error) {
	if profile, found := c.cache.get(id); found {
		return profile, nil
	}
	readAt := c.now().Round(0)
	profile, err := c.store.Profile(ctx, id)
	if err != nil {
		return nil, err
	}
	c.cache.put(id, profile, readAt)
	return profile, nil
}
