package sandbox

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeClock runs due timers in the goroutine that advances it, so that they have finished when Advance returns.
type fakeClock struct {
	mu     sync.Mutex
	more   *sync.Cond
	now    time.Time
	timers []fakeTimer
}

type fakeTimer struct {
	at time.Time
	f  func()
}

func newFakeClock() *fakeClock {
	c := &fakeClock{now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	c.more = sync.NewCond(&c.mu)
	return c
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) After(d time.Duration, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers = append(c.timers, fakeTimer{c.now.Add(d), f})
	c.more.Broadcast()
}

// Advance moves the clock and runs the timers on the way in their order.
func (c *fakeClock) Advance(d time.Duration) {
	c.mu.Lock()
	target := c.now.Add(d)
	for {
		first := -1
		for i, timer := range c.timers {
			if !timer.at.After(target) && (first < 0 || timer.at.Before(c.timers[first].at)) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		timer := c.timers[first]
		c.timers = append(c.timers[:first], c.timers[first+1:]...)
		if timer.at.After(c.now) {
			c.now = timer.at
		}
		c.mu.Unlock()
		timer.f()
		c.mu.Lock()
	}
	c.now = target
	c.mu.Unlock()
}

// count returns the number of timers; await blocks until there are more than count.
func (c *fakeClock) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

func (c *fakeClock) await(count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.timers) <= count {
		c.more.Wait()
	}
}

// inbox receives callbacks. It responds with responseStatuses in turn, then with 200.
type inbox struct {
	server           *httptest.Server
	mu               sync.Mutex
	bodies           []string
	responseStatuses []int
	before           func() // runs while a callback is being received
}

func newInbox(t *testing.T) *inbox {
	in := &inbox{}
	in.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		in.mu.Lock()
		in.bodies = append(in.bodies, string(body))
		status, before := http.StatusOK, in.before
		if len(in.responseStatuses) > 0 {
			status, in.responseStatuses = in.responseStatuses[0], in.responseStatuses[1:]
		}
		in.mu.Unlock()
		if before != nil {
			before()
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(in.server.Close)
	return in
}

// statusPattern finds the status of a payment's callback or of a delivery receipt.
var statusPattern = regexp.MustCompile(`"(?:status|deliveryStatus)":"(\w+)"`)

// statuses are the statuses of the received callbacks, in order.
func (in *inbox) statuses(t *testing.T) string {
	t.Helper()
	in.mu.Lock()
	defer in.mu.Unlock()
	var texts []string
	for _, body := range in.bodies {
		found := statusPattern.FindAllStringSubmatch(body, -1)
		if len(found) != 1 || !json.Valid([]byte(body)) {
			t.Fatalf("callback %q has %d statuses, want one", body, len(found))
		}
		texts = append(texts, found[0][1])
	}
	return strings.Join(texts, " ")
}
