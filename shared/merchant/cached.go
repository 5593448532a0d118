package merchant

import (
	"context"
	"time"
)

// Cached is a Store that remembers what another one said, for a short life. Those who deliver read profiles through it;
// those who authenticate have their own rules for when to ask anew.
type Cached struct {
	store Store
	cache *profileCache
	now   func() time.Time
}

var _ Store = (*Cached)(nil)

// NewCached makes a Cached over a store. life bounds how late a change of a profile shows.
func NewCached(store Store, life time.Duration, now func() time.Time) *Cached {
	return &Cached{store: store, cache: newProfileCache(life, now), now: now}
}

// Profile implements Store: at most one read.
func (c *Cached) Profile(ctx context.Context, id string) (*Profile, error) {
	if profile, found := c.cache.get(id); found {
		return profile, nil
	}
	asked := c.now().Round(0)
	profile, err := c.store.Profile(ctx, id)
	if err != nil {
		return nil, err
	}
	c.cache.put(id, profile, asked)
	return profile, nil
}
