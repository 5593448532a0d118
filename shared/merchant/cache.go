package merchant

import (
	"sync"
	"time"
)

// Sizes of the profile cache, in profiles. What does not exist has room of its own, so that guessing cannot push
// known merchants out.
const (
	maxCachedProfiles = 1024
	maxCachedMisses   = 256
)

// profileCache keeps what the store said, for a short life.
type profileCache struct {
	ttl time.Duration
	now func() time.Time

	mutex    sync.Mutex
	profiles map[string]cacheEntry
	missing  map[string]cacheEntry
}

// cacheEntry is one answer of the store; profile is nil where there is none.
type cacheEntry struct {
	profile *Profile
	readAt  time.Time
}

func newProfileCache(ttl time.Duration, now func() time.Time) *profileCache {
	return &profileCache{ttl: ttl, now: now, profiles: map[string]cacheEntry{}, missing: map[string]cacheEntry{}}
}

// get returns what the store said of an id within the cache's life; found is false where it has to be asked.
func (c *profileCache) get(id string) (profile *Profile, found bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, entries := range []map[string]cacheEntry{c.profiles, c.missing} {
		if entry, exists := entries[id]; exists && c.isFresh(entry) {
			return entry.profile, true
		}
	}
	return nil, false
}

// put keeps an answer of the store; readAt is when it was asked for, so that its age is never underestimated.
func (c *profileCache) put(id string, profile *Profile, readAt time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.profiles, id)
	delete(c.missing, id)
	entries, limit := c.profiles, maxCachedProfiles
	if profile == nil {
		entries, limit = c.missing, maxCachedMisses
	}
	if len(entries) >= limit {
		c.evict(entries)
	}
	entries[id] = cacheEntry{profile: profile, readAt: readAt}
}

// evict drops what is stale, or else the oldest entry.
func (c *profileCache) evict(entries map[string]cacheEntry) {
	sizeBefore, oldest := len(entries), ""
	for id, entry := range entries {
		if !c.isFresh(entry) {
			delete(entries, id)
		} else if oldest == "" || entry.readAt.Before(entries[oldest].readAt) {
			oldest = id
		}
	}
	if len(entries) == sizeBefore {
		delete(entries, oldest)
	}
}

// isFresh compares wall-clock times: the monotonic clock stands still while a function is frozen.
func (c *profileCache) isFresh(entry cacheEntry) bool {
	age := c.now().Round(0).Sub(entry.readAt)
	return age >= 0 && age < c.ttl
}
