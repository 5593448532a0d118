package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/strictjson"
)

// Limits of the connections to operators. The call's context bounds the whole exchange.
const (
	dialTimeout      = 5 * time.Second
	handshakeTimeout = 5 * time.Second
	// idleTimeout is the longest idle time of a reused connection. net/http compares it with the wall clock and with a
	// timer, so it holds across a freeze (decision "idle-connections").
	idleTimeout           = 5 * time.Second
	maxIdlePerHost        = 4
	maxConnectionsPerHost = 64
	maxHeaderBytes        = 32 << 10
	maxResponseBytes      = 256 << 10 // bytes
	sessionCache          = 16
)

var (
	// errResponseTooLong means that a body exceeds maxResponseBytes.
	errResponseTooLong = errors.New("the operator's response is too long")
	// errExchangeFailed replaces errors whose texts may not be logged.
	errExchangeFailed = errors.New("the exchange with the operator failed")
)

// upstreamRequest is a request before the headers that all requests have. header keeps the specification's spelling.
type upstreamRequest struct {
	method string
	path   string // escaped, below the base URL
	header map[string]string
	body   []byte
}

// requestBuilder makes the request for an account. An error means that this account cannot make it.
type requestBuilder func(target account) (upstreamRequest, error)

type exchange struct {
	// version is that of the credentials that the request was made with.
	version int
	status  int
	header  http.Header
	body    []byte
	// err is set unless a complete response arrived.
	err error
	// mayHaveSent is false only if certainly no byte of the request was written.
	mayHaveSent bool
	// connectionLost is true if a reused connection ended before the first byte of a response.
	connectionLost bool
}

// newTransport makes the connection pool: HTTP/1.1, no proxy, no compression, no redirects (a transport follows none).
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: handshakeTimeout,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			ClientSessionCache: tls.NewLRUClientSessionCache(sessionCache),
		},
		MaxIdleConnsPerHost:    maxIdlePerHost,
		MaxConnsPerHost:        maxConnectionsPerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true,
	}
}

// connectionTrace records what happens to a request on its connection. Its hooks run in several goroutines.
type connectionTrace struct {
	mayHaveSent      atomic.Bool
	connectionReused atomic.Bool
	responseStarted  atomic.Bool
}

// clientTrace makes the hooks. GetConn starts each attempt of the transport. The transport repeats only attempts that
// wrote nothing, because our requests are not idempotent by its rules. So the GotConn after the last GetConn decides.
func (w *connectionTrace) clientTrace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { w.mayHaveSent.Store(false) },
		GotConn: func(info httptrace.GotConnInfo) {
			w.connectionReused.Store(info.Reused)
			w.mayHaveSent.Store(true)
		},
		GotFirstResponseByte: func() { w.responseStarted.Store(true) },
	}
}

func (d *Driver) send(ctx context.Context, target account, m upstreamRequest) exchange {
	var w connectionTrace
	request, err := newHTTPRequest(httptrace.WithClientTrace(ctx, w.clientTrace()), target, m)
	if err != nil {
		return exchange{err: err}
	}
	response, err := d.transport.RoundTrip(request)
	if err != nil {
		cut := w.mayHaveSent.Load() && w.connectionReused.Load() && !w.responseStarted.Load() && ctx.Err() == nil
		return exchange{err: sanitizeError(err), mayHaveSent: w.mayHaveSent.Load(), connectionLost: cut}
	}
	defer func() { _ = response.Body.Close() }() // the body was read or abandoned
	x := exchange{status: response.StatusCode, header: response.Header, mayHaveSent: true}
	x.body, x.err = io.ReadAll(io.LimitReader(response.Body, maxResponseBytes+1))
	if x.err == nil && len(x.body) > maxResponseBytes {
		x.err = errResponseTooLong
	}
	x.err = sanitizeError(x.err)
	return x
}

// sanitizeError keeps errors whose texts contain at most addresses, and replaces the others. Some errors of net/http
// quote the operator's data.
func sanitizeError(err error) error {
	var network *net.OpError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case err == nil, errors.Is(err, errResponseTooLong), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		errors.As(err, &network), errors.As(err, &certificate), errors.As(err, &record):
		return err
	}
	return errExchangeFailed
}

// newHTTPRequest makes the HTTP request. The operator receives the path exactly as it is escaped here.
func newHTTPRequest(ctx context.Context, target account, m upstreamRequest) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, m.method, target.BaseURL+m.path, bytes.NewReader(m.body))
	if err != nil {
		return nil, errors.New("the request's address is malformed") // err would quote it
	}
	request.Header.Set("Authorization", "Bearer "+target.AccessToken)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "mobilegateway")
	if m.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range m.header {
		if value != "" {
			request.Header[name] = []string{value} // Set would change the spelling
		}
	}
	return request, nil
}

// unauthorized reports whether the operator refused the access token: a 401 with a requestError.
func (x exchange) unauthorized() bool {
	if x.err != nil || x.status != http.StatusUnauthorized {
		return false
	}
	_, isRequestError := x.requestError()
	return isRequestError
}

// requestError reads the requestError of a response. An ambiguous body (a duplicate key) has none, because a final
// refusal must be certain.
func (x exchange) requestError() (*fault.OperatorException, bool) {
	if _, err := strictjson.Parse(x.body); err != nil {
		return nil, false
	}
	found, isRequestError := oneapi.DecodeRequestError(x.body)
	if !isRequestError {
		return nil, false
	}
	found.HTTPStatus = x.status
	return found, true
}
