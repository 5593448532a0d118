package gatewayctltest

import (
	"context"
	"maps"
	"slices"
	"sync"

	"mobilegateway/gatewayctl/counts/daycount"
)

// Counts is the store of counts in memory. Saves counts the writes.
type Counts struct {
	mutex sync.Mutex
	Forms map[daycount.Key]string
	Saves int
	// Unread makes each Load leave all but its first key unread.
	Unread bool
	// Err, if set, fails each Save.
	Err error
}

// Load implements daycount.Store.
func (c *Counts) Load(
	_ context.Context, keys []daycount.Key,
) (forms map[daycount.Key]string, unread []daycount.Key, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.Unread && len(keys) > 1 {
		keys, unread = keys[:1], slices.Clone(keys[1:])
	}
	forms = maps.Clone(c.Forms)
	maps.DeleteFunc(forms, func(key daycount.Key, _ string) bool { return !slices.Contains(keys, key) })
	return forms, unread, nil
}

// Save implements daycount.Store.
func (c *Counts) Save(_ context.Context, key daycount.Key, form string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.Err != nil {
		return c.Err
	}
	c.Forms[key] = form
	c.Saves++
	return nil
}
