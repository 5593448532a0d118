package merchant

import (
	"sync"
	"time"
)

// Sizes of the profile cache, in profiles. What does not exist has room of its own, so that guessing cannot push
// known merchants out.
const (
	maxKnown   = 1024
	maxUnknown = 256
)

// profileCache keeps what the store said, for a short life.
type profileCache struct {
	life time.Duration
	now  func() time.Time

	mutex   sync.Mutex
	known   map[string]cached
	unknown map[string]cached
}

// cached is one answer of the store; profile is nil where there is none.
type cached struct {
	profile *Profile
	readAt  time.Time
}

func newProfileCache(life time.Duration, now func() time.Time) *profileCache {
	return &profileCache{life: life, now: now, known: map[string]cached{}, unknown: map[string]cached{}}
}

// get returns what the store said of an id within the cache's life; found is false where it has to be asked.
func (c *profileCache) get(id string) (profile *Profile, found bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, entries := range []map[string]cached{c.known, c.unknown} {
		if entry, is := entries[id]; is && c.fresh(entry) {
			return entry.profile, true
		}
	}
	return nil, false
}

// put keeps an answer of the store; readAt is when it was asked for, so that its age is never underestimated.
func (c *profileCache) put(id string, profile *Profile, readAt time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.known, id)
	delete(c.unknown, id)
	entries, limit := c.known, maxKnown
	if profile == nil {
		entries, limit = c.unknown, maxUnknown
	}
	if len(entries) >= limit {
		c.makeRoom(entries)
	}
	entries[id] = cached{profile: profile, readAt: readAt}
}

// makeRoom drops what is stale, or else the oldest entry.
func (c *profileCache) makeRoom(entries map[string]cached) {
	full, oldest := len(entries), ""
	for id, entry := range entries {
		if !c.fresh(entry) {
			delete(entries, id)
		} else if oldest == "" || entry.readAt.Before(entries[oldest].readAt) {
			oldest = id
		}
	}
	if len(entries) == full {
		delete(entries, oldest)
	}
}

// fresh compares wall-clock times: the monotonic clock stands still while a function is frozen.
func (c *profileCache) fresh(entry cached) bool {
	age := c.now().Round(0).Sub(entry.readAt)
	return age >= 0 && age < c.life
}
