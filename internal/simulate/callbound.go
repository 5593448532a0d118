package simulate

import (
	"net/http"
	"time"
)

// maxCallsPerHour bounds the outside calls of one kind that a function makes for one entry within an hour. The lookups
// for the callbacks of a payment come closest: its operator sends at most three, ten times each.
const maxCallsPerHour = 45

// countCall checks that no function makes the same call again and again (invariant 7). Without the bound such a history
// would take minutes. name is that of the call and its entry.
func (c *checker) countCall(name string) {
	const window = time.Hour
	times := append(c.calls[name], time.Now())
	if len(times) > maxCallsPerHour {
		first := times[len(times)-1-maxCallsPerHour]
		if time.Since(first) < window {
			c.fail(7, "%s: %d calls within %s", name, maxCallsPerHour+1, time.Since(first))
		}
		times = times[1:]
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
