package operationtest

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
)

// Clock is a clock that only a test moves. It begins far ahead of the real one, so that no deadline derived from it
// ends during a test.
type Clock struct {
	mutex sync.Mutex
	now   time.Time
}

func newClock() *Clock {
	return &Clock{now: time.Date(2096, 11, 21, 10, 0, 0, 0, time.UTC)}
}

// Now is the time of the clock.
func (c *Clock) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.now
}

// Advance moves the clock.
func (c *Clock) Advance(by time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.now = c.now.Add(by)
}

// uniqueReader returns bytes that never repeat and are the same in every run.
type uniqueReader struct{ count atomic.Uint64 }

// Read implements io.Reader.
func (r *uniqueReader) Read(p []byte) (int, error) {
	clear(p)
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], r.count.Add(1))
	copy(p, number[:])
	return len(p), nil
}
