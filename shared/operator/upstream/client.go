// Package upstream has what the drivers of operators share. It makes HTTP exchanges, exchanges access tokens, reads the
// fields of responses, and constructs outcomes.
//
// It does not depend on a platform. Its invariant: an exchange reports MayHaveSent unless certainly no byte was
// written.
package upstream

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

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/strictjson"
)

// Limits of the connections to operators. The call's context bounds the whole exchange.
const (
	dialTimeout      = 5 * time.Second
	handshakeTimeout = 5 * time.Second
	// idleTimeout is the longest idle time of a reused connection. net/http compares it with the wall clock and with a
	// timer, so it holds across a freeze (decision "idle-connections").
	idleTimeout = 5 * time.Second
	// maxConnectionsPerHost fits the sweep, which makes 32 lookups and 32 payers' SMS at once. All of them may stay
	// idle between two calls: with fewer, most calls of a busy sweep would dial.
	maxConnectionsPerHost = 64
	maxHeaderBytes        = 32 << 10
	sessionCache          = 16
)

// MaxResponseBytes is the longest body of a response that is read.
const MaxResponseBytes = 256 << 10

var (
	// errResponseTooLong means that a body exceeds MaxResponseBytes.
	errResponseTooLong = logsafe.New("the operator's response is too long")
	// errExchangeFailed replaces errors whose texts may not be logged.
	errExchangeFailed = logsafe.New("the exchange with the operator failed")
)

// Request is one request to a platform. Header keeps the spelling of its names; an empty value is not sent.
type Request struct {
	Method string
	URL    string // with its escapes, sent as they are
	Header map[string]string
	Body   []byte
	// IsTransaction is true of a charge, a payment and a message: an observer may end its exchange early. It is false
	// of a preparation, a token exchange and a lookup.
	IsTransaction bool
}

// Exchange is a request and what came back.
type Exchange struct {
	Status int
	Header http.Header
	Body   []byte
	// Err is set unless a complete response arrived.
	Err error
	// MayHaveSent is false only if certainly no byte of the request was written.
	MayHaveSent bool
	// ConnectionLost is true if a reused connection ended before the first byte of a response.
	ConnectionLost bool
	// Account is the account of a driver's request.
	Account credentials.Account
	// Refused is the exchange before this one, in which the platform refused the credentials; nil for none.
	Refused *Exchange
}

// Client sends requests to platforms. It follows no redirect and repeats nothing that may have been sent.
type Client struct {
	transport http.RoundTripper
}

// NewClient makes a client over a transport; nil for connections of its own.
func NewClient(transport http.RoundTripper) *Client {
	if transport == nil {
		transport = newTransport()
	}
	return &Client{transport}
}

// defaultTimeout bounds a call without a deadline, which breaks the drivers' contract.
const defaultTimeout = 20 * time.Second

// WithDefaultTimeout adds the default timeout to a context without a deadline.
func WithDefaultTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, set := ctx.Deadline(); set {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, defaultTimeout)
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
		MaxIdleConnsPerHost:    maxConnectionsPerHost,
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
func (trace *connectionTrace) clientTrace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { trace.mayHaveSent.Store(false) },
		GotConn: func(info httptrace.GotConnInfo) {
			trace.connectionReused.Store(info.Reused)
			trace.mayHaveSent.Store(true)
		},
		GotFirstResponseByte: func() { trace.responseStarted.Store(true) },
	}
}

// Send makes one exchange. The errors of an Exchange contain at most addresses.
func (c *Client) Send(ctx context.Context, r Request) Exchange {
	var trace connectionTrace
	request, err := newHTTPRequest(httptrace.WithClientTrace(ctx, trace.clientTrace()), r)
	if err != nil {
		return Exchange{Err: err}
	}
	observer, isObserved := ctx.Value(observerKey{}).(Observer)
	if !isObserved {
		return c.roundTrip(request, &trace)
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	defer cancel(nil)
	var end func()
	if r.IsTransaction {
		end = func() {
			if trace.mayHaveSent.Load() {
				cancel(errEndedEarly)
			}
		}
	}
	observer.ExchangeBegins(end)
	x := c.roundTrip(request.WithContext(ctx), &trace)
	if x.Err != nil && errors.Is(context.Cause(ctx), errEndedEarly) {
		x.Err, x.MayHaveSent, x.ConnectionLost = errEndedEarly, true, false
	}
	observer.ExchangeEnds(x.evidence())
	return x
}

// roundTrip is Send for a request with its trace.
func (c *Client) roundTrip(request *http.Request, trace *connectionTrace) Exchange {
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		cut := trace.mayHaveSent.Load() && trace.connectionReused.Load() && !trace.responseStarted.Load() &&
			request.Context().Err() == nil
		return Exchange{Err: sanitizeError(err), MayHaveSent: trace.mayHaveSent.Load(), ConnectionLost: cut}
	}
	defer func() { _ = response.Body.Close() }() // the body was read or abandoned
	x := Exchange{Status: response.StatusCode, Header: response.Header, MayHaveSent: true}
	x.Body, x.Err = io.ReadAll(io.LimitReader(response.Body, MaxResponseBytes+1))
	if x.Err == nil && len(x.Body) > MaxResponseBytes {
		x.Err = errResponseTooLong
	}
	x.Err = sanitizeError(x.Err)
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

// newHTTPRequest makes the HTTP request. The platform receives the path exactly as it is escaped.
func newHTTPRequest(ctx context.Context, r Request) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, logsafe.New("the request's address is malformed") // err would quote it
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "mobilegateway")
	if r.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.Header {
		if value != "" {
			request.Header[name] = []string{value} // Set would change the spelling
		}
	}
	return request, nil
}

// Document returns the response as JSON; false for a body that is not one JSON object with each key once.
func (x Exchange) Document() (*strictjson.Reader, bool) {
	if x.Err != nil {
		return nil, false
	}
	doc, err := strictjson.Parse(x.Body)
	return doc, err == nil
}

// IsSuccess reports whether a complete response with a status of 200 to 299 arrived.
func (x Exchange) IsSuccess() bool { return x.Err == nil && x.Status >= 200 && x.Status <= 299 }

// IsUnauthorized reports whether a complete response with 401 arrived.
func (x Exchange) IsUnauthorized() bool { return x.Err == nil && x.Status == http.StatusUnauthorized }

// IsRefused reports whether a response has the status of refused credentials or rights: 401 or 403.
func (x Exchange) IsRefused() bool {
	return x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden
}

// maxCodeDigits is the longest code of digits: a longer one may be a number of a person.
const maxCodeDigits = 7

// ErrorCode returns the first code of a response among paths, a text or a number; "" if there is none. A code has
// letters, digits, _ and -, and can be logged.
func (x Exchange) ErrorCode(paths ...string) string {
	response, isDocument := x.Document()
	if !isDocument {
		return ""
	}
	for _, path := range paths {
		code := TextOrNumber(response, path)
		if IsIdentifier(code) && !(ascii.IsDigits(code) && len(code) > maxCodeDigits) {
			return code
		}
	}
	return ""
}
