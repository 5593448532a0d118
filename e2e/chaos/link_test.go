//go:build linux

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"mobilegateway/e2e/harness"
)

// portTimeout bounds the wait for a port that another connection has. It exceeds the minute of Linux's TIME-WAIT.
const portTimeout = 75 * time.Second

// faultDurations are how long a link's faults last. The longest one exceeds every timeout of a call to an operator.
var faultDurations = []time.Duration{
	500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 14 * time.Second,
}

// databaseFaultDurations are short. A request fails at its first call during a long fault, and at any call during a
// short one.
var databaseFaultDurations = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second,
}

// link is a TCP connection with faults: a proxy in front of one address.
type link struct {
	name  string
	proxy *toxiproxy.Proxy
	// durations are the possible durations of its faults.
	durations []time.Duration
}

// newLink starts a link, which refuses connections until forwardTo.
func newLink(t *testing.T, name string, durations []time.Duration) *link {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &link{
		name: name, proxy: toxiproxy.NewProxy(server, name, "127.0.0.1:0", "127.0.0.1:1"), durations: durations,
	}
	if err := l.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.proxy.Stop)
	return l
}

// url returns the link's address.
func (l *link) url() string { return "http://" + l.proxy.Listen }

// forwardTo sets the address behind the link.
func (l *link) forwardTo(t *testing.T, address string) {
	t.Helper()
	_, host, _ := strings.Cut(address, "://")
	err := l.proxy.Update(&toxiproxy.Proxy{Listen: l.proxy.Listen, Upstream: host, Enabled: true})
	if err != nil {
		t.Fatal(err)
	}
}

// linkFault is one kind of fault. The proxy calls the direction of the requests upstream.
type linkFault struct {
	name, kind, stream string
	// attributes draws the fault's settings.
	attributes func(random *rand.Rand) string
}

// linkFaults are the faults of a link besides refused connections.
var linkFaults = []linkFault{
	{"reset after the request", "reset_peer", "downstream", between("timeout", 0, 50)},
	{"reset before the request arrives", "reset_peer", "upstream", between("timeout", 0, 50)},
	{"cut response", "limit_data", "downstream", between("bytes", 1, 500)},
	{"cut request", "limit_data", "upstream", between("bytes", 1, 900)},
	{"late request", "latency", "upstream", between("latency", 100, 3000)},
	{"late response", "latency", "downstream", between("latency", 100, 3000)},
	{"no response", "timeout", "downstream", between("timeout", 0, 1)},
	{"request lost", "timeout", "upstream", between("timeout", 0, 1)},
	{"low bandwidth", "bandwidth", "downstream", between("rate", 1, 8)},
}

// between draws one setting.
func between(setting string, least, limit int) func(*rand.Rand) string {
	return func(random *rand.Rand) string {
		return fmt.Sprintf(`{"%s":%d}`, setting, least+random.IntN(limit-least))
	}
}

// fault is a fault before it begins.
type fault struct {
	name string
	// begin starts it. The function that it returns ends it.
	begin    func() (end func() error, err error)
	duration time.Duration
}

// draw returns the next fault of a link. Each fault hits some or all connections.
func (l *link) draw(random *rand.Rand) fault {
	f := fault{duration: pick(random, l.durations...)}
	kind := random.IntN(len(linkFaults) + 1)
	if kind == len(linkFaults) {
		f.name, f.begin = l.name+": down", l.disconnect
		return f
	}
	chosen := linkFaults[kind]
	toxicity := pick(random, "0.3", "0.6", "1")
	toxic := fmt.Sprintf(`{"name":"fault","type":"%s","stream":"%s","toxicity":%s,"attributes":%s}`,
		chosen.kind, chosen.stream, toxicity, chosen.attributes(random))
	f.name = l.name + ": " + chosen.name
	f.begin = func() (func() error, error) {
		_, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(toxic))
		return l.reset, err
	}
	return f
}

// disconnect ends all connections and refuses new ones until its result is called.
func (l *link) disconnect() (connect func() error, err error) {
	l.proxy.Stop()
	return l.start, nil
}

// start listens again.
func (l *link) start() error { return listenAgain(l.proxy.Listen, l.proxy.Start) }

// listenAgain starts what listened at an address before. It repeats that, because for a moment another connection may
// have the port. If it fails, the error shows the sockets of the port.
func listenAgain(address string, start func() error) error {
	err := harness.Poll(context.Background(), portTimeout, start)
	if err != nil {
		return fmt.Errorf("%w; sockets of its port: %s", err, socketsOf(address))
	}
	return nil
}

// socketsOf returns the lines of /proc/net/tcp and tcp6 whose local port is that of an address.
func socketsOf(address string) string {
	suffix := fmt.Sprintf(":%04X", netip.MustParseAddrPort(address).Port())
	var sockets []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); strings.HasSuffix(fields[1], suffix) {
				sockets = append(sockets, strings.Join(fields, " "))
			}
		}
	}
	return strings.Join(sockets, "; ")
}

// reset ends the fault. It also ends all connections: one that lost data must not be used again.
func (l *link) reset() error {
	l.proxy.Stop()
	l.proxy.Toxics.ResetToxics(context.Background())
	return l.start()
}
