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
	// idleTimeout is how long a connection may be idle and still be used. net/http compares it with the wall clock as
	// well as with a timer, so that it holds across a freeze (decision "idle-connections").
	idleTimeout           = 5 * time.Second
	maxIdlePerHost        = 4
	maxConnectionsPerHost = 64 // a host
	maxHeaderBytes        = 32 << 10
	maxResponseBytes      = 256 << 10 // bytes of a body that are read
	sessionCache          = 16
)

var (
	// errResponseTooLong is the cause of an answer that is longer than maxAnswer.
	errResponseTooLong = errors.New("the operator's answer is too long")
	// errExchangeFailed stands for the ways an exchange can fail whose own texts are not for a log.
	errExchangeFailed = errors.New("the exchange with the operator broke off")
)

// upstreamRequest is an upstream request before the parts that all have in common. header keeps the specification's spelling.
type upstreamRequest struct {
	method string
	path   string // escaped, below the base URL
	header map[string]string
	body   []byte
}

// requestBuilder makes the request for an account; an error means that the account cannot make it.
type requestBuilder func(target account) (upstreamRequest, error)

// exchange is what came of sending one request.
type exchange struct {
	status int
	header http.Header
	body   []byte
	// err is set where no whole answer came.
	err error
	// mayHaveSent is false only where certainly no byte of the request was written.
	mayHaveSent bool
	// connectionLost is true where a reused connection ended before the first byte of an answer.
	connectionLost bool
}

// newTransport makes the connections: HTTP/1.1, no proxy, no compression, no redirects (a transport follows none).
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

// connectionTrace notes what happened to a request on its connection. Its hooks run in several goroutines.
type connectionTrace struct {
	mayHaveSent      atomic.Bool
	connectionReused atomic.Bool
	responseStarted  atomic.Bool
}

// clientTrace makes the hooks. GetConn comes first in each try of the transport, which tries again only where it wrote
// nothing (our requests are not idempotent by its rules); so GotConn after the last GetConn is what counts.
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

// send makes one exchange.
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
	defer func() { _ = response.Body.Close() }() // nothing is to be learned from it: the body was read or given up
	x := exchange{status: response.StatusCode, header: response.Header, mayHaveSent: true}
	x.body, x.err = io.ReadAll(io.LimitReader(response.Body, maxResponseBytes+1))
	if x.err == nil && len(x.body) > maxResponseBytes {
		x.err = errResponseTooLong
	}
	x.err = sanitizeError(x.err)
	return x
}

// sanitizeError keeps the errors whose texts hold no more than addresses, and replaces the others: some of net/http's quote
// what the operator sent.
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

// newHTTPRequest makes the HTTP request of a message: the operator sees the path exactly as it is escaped here.
func newHTTPRequest(ctx context.Context, target account, m upstreamRequest) (*http.Request, error) {
	var body io.Reader
	if m.body != nil {
		body = bytes.NewReader(m.body)
	}
	request, err := http.NewRequestWithContext(ctx, m.method, target.BaseURL+m.path, body)
	if err != nil {
		return nil, errors.New("the request's address is malformed") // the error would quote it
	}
	request.Header.Set("Authorization", "Bearer "+target.AccessToken)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "mobilegateway")
	if m.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range m.header {
		if value != "" {
			request.Header[name] = []string{value} // not Set, which would respell it
		}
	}
	return request, nil
}

// unauthorized reports whether the operator refused the access token in its own words: a 401 with a requestError.
func (x exchange) unauthorized() bool {
	if x.err != nil || x.status != http.StatusUnauthorized {
		return false
	}
	_, isRequestError := x.requestError()
	return isRequestError
}

// requestError reads the requestError that an answer carries. A body that two readers could read differently (a key twice)
// carries none: a final refusal must be beyond doubt.
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
