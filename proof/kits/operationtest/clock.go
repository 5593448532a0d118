package operationtest

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Clock is a clock that only a test moves. It begins far ahead of the real one, so that no deadline derived from it
// ends during a test.
type Clock struct{ unixNano atomic.Int64 }

// Now is the time of the clock.
func (c *Clock) Now() time.Time { return time.Unix(0, c.unixNano.Load()).UTC() }

// Advance moves the clock.
func (c *Clock) Advance(by time.Duration) { c.unixNano.Add(int64(by)) }

// UniqueReader returns bytes that never repeat and are the same in each run. It is safe for concurrent use.
type UniqueReader struct{ count atomic.Int64 }

// Read implements io.Reader.
func (r *UniqueReader) Read(p []byte) (int, error) {
	copy(p, fmt.Sprintf("%08d", r.count.Add(1)))
	return len(p), nil
}
