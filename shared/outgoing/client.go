package outgoing

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"mobilegateway/shared/logsafe"
)

// Limits of a connection. The context of the request limits the whole exchange.
const (
	dialTimeout      = 5 * time.Second
	handshakeTimeout = 5 * time.Second
	// idleTimeout is short, because a function can freeze at any time and wake with dead connections (decision
	// "idle-connections").
	idleTimeout = 4 * time.Second
	// maxIdlePerHost and maxIdleConnections fit the sweep, which makes 32 attempts at one server at once, and 256 in
	// total. With fewer, most attempts of a busy sweep would dial.
	maxIdlePerHost     = 32
	maxIdleConnections = 256
	maxHeaderBytes     = 16 << 10
	// sessionCache is the number of servers whose TLS sessions are resumed.
	sessionCache = 256
)

// The client's own errors, for errors.Is.
var (
	// ErrForbiddenAddress means that the name resolved to a forbidden address.
	ErrForbiddenAddress = logsafe.New("the address is private or special")
	// ErrNotHTTPS means that the URL is not https.
	ErrNotHTTPS = logsafe.New("the connection would not be encrypted")
)

// NewClient makes an HTTP client for URLs that passed CheckNotificationURL. It checks every address before it connects,
// uses neither proxy nor compression, and returns a redirect as the response. Only the policy's AllowLoopback matters
// here. The caller sets a deadline on each request, and limits how much of a response it reads.
//
// transport replaces the connections, and with them the check of addresses; it is nil except in a simulation.
func NewClient(policy Policy, transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = newTransport(policy)
	}
	return &http.Client{
		Transport:     httpsTransport{next: transport, allowPlainLoopback: policy.AllowLoopback},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// newTransport makes connections that check every address.
func newTransport(policy Policy) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: dialControl(policy)}
	return &http.Transport{
		Proxy:               nil, // a proxy would connect without our check
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: handshakeTimeout,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			ClientSessionCache: tls.NewLRUClientSessionCache(sessionCache),
		},
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           maxIdleConnections,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // a response cannot grow in our memory
	}
}

// dialControl checks each resolved address before the connection is made.
func dialControl(policy Policy) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err != nil || (network != "tcp4" && network != "tcp6") {
			return ErrForbiddenAddress
		}
		if allowed := policy.AllowLoopback && isLoopback(target.Addr()); !allowed && !isPublicAddress(target.Addr()) {
			return ErrForbiddenAddress
		}
		return nil
	}
}

// httpsTransport refuses plain http, except to a loopback host in the local run.
type httpsTransport struct {
	next               http.RoundTripper
	allowPlainLoopback bool
}

// RoundTrip implements http.RoundTripper.
func (t httpsTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		host := request.URL.Hostname()
		loopback, err := checkHost(host, strings.Contains(host, ":"), Policy{AllowLoopback: true})
		if !t.allowPlainLoopback || err != nil || !loopback {
			if request.Body != nil {
				_ = request.Body.Close() // a RoundTripper always closes it
			}
			return nil, ErrNotHTTPS
		}
	}
	return t.next.RoundTrip(request)
}

// CloseIdleConnections lets http.Client.CloseIdleConnections work.
func (t httpsTransport) CloseIdleConnections() {
	if pool, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		pool.CloseIdleConnections()
	}
}
