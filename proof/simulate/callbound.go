package simulate

import (
	"net/http"
	"time"
)

// callBounds bound the outside calls of one kind that a function makes for one entry within some time. The lookups for
// the callbacks of a payment come closest to the first bound: its operator sends at most three, ten times each. Within
// a day a notification has at most 50 claims without an outcome and ten attempts, and may be replayed.
var callBounds = []struct {
	calls  int
	within time.Duration
}{{45, time.Hour}, {120, 24 * time.Hour}}

// countCall checks that no function makes the same call again and again (invariant 7). A history with such a bug would
// take minutes without the bounds. name is that of the call and its entry.
func (c *checker) countCall(name string) {
	times := append(c.calls[name], time.Now())
	for _, bound := range callBounds {
		if first := len(times) - 1 - bound.calls; first >= 0 && time.Since(times[first]) < bound.within {
			c.fail(7, "%s: %d calls within %s", name, bound.calls+1, time.Since(times[first]))
		}
	}
	c.calls[name] = times
}

// countRequest counts a request whose entry is in its path or in its header.
func (c *checker) countRequest(function string, request *http.Request) {
	switch call := routeCall(request); call {
	case "http getStatus":
		c.countCall(function + ": " + call + " " + request.URL.Path)
	case "http notification":
		c.countCall(function + ": " + call + " " + request.Header.Get("webhook-id"))
	}
}
