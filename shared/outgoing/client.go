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
	idleTimeout     = 4 * time.Second
	idlePerHost     = 2
	idleConnections = 32
	maxHeaderBytes  = 16 << 10
)

// Causes of a failure that Client itself decides, to be found with errors.Is.
var (
	// ErrAddress: the name resolved to an address that must not be reached.
	ErrAddress = errors.New("the address is private or special")
	// ErrPlain: the URL is not https.
	ErrPlain = errors.New("the connection would not be encrypted")
)

// Client makes an HTTP client for URLs that passed Check. It checks every address that it is about to connect to, uses
// no proxy and no compression, and follows no redirect: it returns the redirect as the answer. Only AllowLoopback of
// the policy matters here. The caller sets a deadline on each request and limits how much of an answer it reads.
func Client(policy Policy) *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: guard(policy)}
	transport := &http.Transport{
		Proxy:                  nil, // a proxy would dial unguarded
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    handshakeTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           idleConnections,
		MaxIdleConnsPerHost:    idlePerHost,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // an answer cannot grow in our memory
	}
	return &http.Client{
		Transport:     encryptedOnly{next: transport, plainLoopback: policy.AllowLoopback},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// guard is called with each resolved address before the connection is made.
func guard(policy Policy) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err != nil || (network != "tcp4" && network != "tcp6") {
			return ErrAddress
		}
		if policy.AllowLoopback && loopbackAddress(target.Addr()) {
			return nil
		}
		if !public(target.Addr()) {
			return ErrAddress
		}
		return nil
	}
}

// encryptedOnly refuses plain http, but to a loopback host in the local run.
type encryptedOnly struct {
	next          *http.Transport
	plainLoopback bool
}

// RoundTrip implements http.RoundTripper.
func (t encryptedOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		host := request.URL.Hostname()
		loopback, err := hostRule(host, strings.Contains(host, ":"), Policy{AllowLoopback: true})
		if !t.plainLoopback || err != nil || !loopback {
			if request.Body != nil {
				_ = request.Body.Close() // a RoundTripper always closes it
			}
			return nil, ErrPlain
		}
	}
	return t.next.RoundTrip(request)
}

// CloseIdleConnections lets http.Client.CloseIdleConnections work.
func (t encryptedOnly) CloseIdleConnections() { t.next.CloseIdleConnections() }
