package awsclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed" // for the roots
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Limits of the connections.
const (
	dialTimeout = 1500 * time.Millisecond // TCP and TLS together
	// idleTimeout also holds across a freeze, because net/http compares it with the wall clock too.
	idleTimeout = 20 * time.Second
	// maxConnectionsPerHost fits the workers of the sweep. All of its connections may stay idle between two calls: with
	// fewer, most calls of a busy sweep would dial. maxIdleConnections are those to both services.
	maxConnectionsPerHost = 32
	maxIdleConnections    = 2 * maxConnectionsPerHost
	maxHeaderBytes        = 64 << 10
	maxDrainBytes         = 4 << 10 // bytes of a response read to make its connection reusable
	sessionCache          = 8
)

// amazonRootsPEM has Amazon's public roots: Amazon Root CA 1 to 4, Starfield Services Root G2 and Starfield Class 2. It
// is one file, because a folder would link package io/fs.
//
//go:embed amazon-roots.pem
var amazonRootsPEM string

// amazonRoots parses the embedded roots. Loading the system's pool instead takes ten times as long.
func amazonRoots() (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(amazonRootsPEM)) {
		return nil, errors.New("the embedded roots are damaged")
	}
	return pool, nil
}

// newTransport makes the connection pool for AWS, without proxy and without compression because responses are small.
func newTransport(roots *x509.CertPool) *http.Transport {
	dial := &dialer{amazonRootsTLS: newTLSConfig(roots), systemRootsTLS: newTLSConfig(nil)}
	return &http.Transport{
		DialContext:            dial.net.DialContext,
		DialTLSContext:         dial.dialTLS,
		MaxIdleConns:           maxIdleConnections,
		MaxIdleConnsPerHost:    maxConnectionsPerHost,
		MaxConnsPerHost:        maxConnectionsPerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true,
	}
}

// newTLSConfig returns the TLS configuration for a pool of roots; nil means the system's roots.
func newTLSConfig(roots *x509.CertPool) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		RootCAs:            roots,
		ClientSessionCache: tls.NewLRUClientSessionCache(sessionCache),
	}
}

// dialer opens TLS connections and verifies them against Amazon's roots first. If the endpoint chains to another
// authority (a private endpoint, a stub), it dials again with the system's pool, and uses that pool from then on.
type dialer struct {
	net            net.Dialer
	amazonRootsTLS *tls.Config
	systemRootsTLS *tls.Config
	useSystemRoots atomic.Bool
}

// dialTLS opens one verified connection within dialTimeout.
func (d *dialer) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if d.useSystemRoots.Load() {
		return d.dialWithConfig(ctx, d.systemRootsTLS, network, address)
	}
	conn, err := d.dialWithConfig(ctx, d.amazonRootsTLS, network, address)
	var unknownAuthority x509.UnknownAuthorityError
	if !errors.As(err, &unknownAuthority) {
		return conn, err
	}
	conn, err = d.dialWithConfig(ctx, d.systemRootsTLS, network, address)
	if err == nil {
		d.useSystemRoots.Store(true)
	}
	return conn, err
}

func (d *dialer) dialWithConfig(ctx context.Context, config *tls.Config, network, address string) (net.Conn, error) {
	return (&tls.Dialer{NetDialer: &d.net, Config: config}).DialContext(ctx, network, address)
}
