package operationtest

import (
	"encoding/binary"
	"sync"
	"time"
)

// Clock is a clock that only a test moves. It begins far ahead of the real one, so that no deadline made of it ends
// while a test runs.
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

// uniqueReader gives bytes that never repeat and are the same in every run.
type uniqueReader struct {
	mutex sync.Mutex
	count uint64
}

// Read is io.Reader's.
func (r *uniqueReader) Read(p []byte) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.count++
	clear(p)
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], r.count)
	copy(p, number[:])
	return len(p), nil
}
