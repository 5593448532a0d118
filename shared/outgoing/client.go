package outgoing

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// Limits of a connection that Client makes. The whole exchange is limited by the context of the request.
const (
	dialTimeout      = 5 * time.Second
	handshakeTimeout = 5 * time.Second
	// idleTimeout is short: a function may be frozen at any time, and wakes with connections that are dead (decision
	// "idle-connections").
	idleTimeout        = 4 * time.Second
	maxIdlePerHost     = 2
	maxIdleConnections = 32
	maxHeaderBytes     = 16 << 10
)

// Causes of a failure that Client itself decides, to be found with errors.Is.
var (
	// ErrForbiddenAddress: the name resolved to an address that must not be reached.
	ErrForbiddenAddress = errors.New("the address is private or special")
	// ErrNotHTTPS: the URL is not https.
	ErrNotHTTPS = errors.New("the connection would not be encrypted")
)

// NewClient makes an HTTP client for URLs that passed Check. It checks every address that it is about to connect to, uses
// no proxy and no compression, and follows no redirect: it returns the redirect as the answer. Only AllowLoopback of
// the policy matters here. The caller sets a deadline on each request and limits how much of an answer it reads.
func NewClient(policy Policy) *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: dialControl(policy)}
	transport := &http.Transport{
		Proxy:                  nil, // a proxy would dial unguarded
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    handshakeTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           maxIdleConnections,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // an answer cannot grow in our memory
	}
	return &http.Client{
		Transport:     httpsTransport{next: transport, allowPlainLoopback: policy.AllowLoopback},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// dialControl is called with each resolved address before the connection is made.
func dialControl(policy Policy) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err != nil || (network != "tcp4" && network != "tcp6") {
			return ErrForbiddenAddress
		}
		if policy.AllowLoopback && isLoopback(target.Addr()) {
			return nil
		}
		if !isPublicAddress(target.Addr()) {
			return ErrForbiddenAddress
		}
		return nil
	}
}

// httpsTransport refuses plain http, but to a loopback host in the local run.
type httpsTransport struct {
	next               *http.Transport
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
func (t httpsTransport) CloseIdleConnections() { t.next.CloseIdleConnections() }
