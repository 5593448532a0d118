// Package outside models the world outside the gateway for the simulator: the platform of the specification's protocol,
// merchants' servers, the secret store, and merchants' clients. The platform is that of package sandbox: this package
// draws what it does, and adds the faults of the transport.
//
// Every model is a deterministic state machine. It has no goroutines, no locks and no clock: the caller passes the time
// and decides the order of the calls. Exchanges are values, so the caller also decides when a response arrives. A
// Chooser takes every decision, and choice 0 is always the harmless one.
package outside

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"syscall"
	"time"
)

// Chooser takes the decisions of a history. Choose returns a number from 0 to n-1; 0 is the normal choice.
type Chooser interface {
	Choose(label string, n int) int
}

// Failure is a failure of the transport.
type Failure int

// The failures. All but ConnectionRefused occur after the request was sent.
const (
	NoFailure         Failure = iota
	ConnectionRefused         // no connection: the request was certainly not sent
	ConnectionReset           // a new connection ends before the response
	StaleConnection           // a reused connection ends before the first byte of a response
	NoResponse                // the connection stays open, and no response comes
	TruncatedBody             // the connection ends within the body
)

// Exchange is the result of one HTTP request. The caller waits for Delay, with NoResponse until the request's context
// ends, and then calls Result.
type Exchange struct {
	Status  int
	Header  http.Header
	Body    []byte
	Failure Failure
	Delay   time.Duration
}

// Connect calls the hooks of the request's httptrace from which the operator's driver learns whether the request was
// sent. Call it before the wait for the response.
func (e Exchange) Connect(request *http.Request) {
	trace := traceOf(request)
	if trace.GetConn != nil {
		trace.GetConn(request.URL.Host)
	}
	if trace.GotConn != nil && e.Failure != ConnectionRefused {
		trace.GotConn(httptrace.GotConnInfo{Reused: e.Failure == StaleConnection})
	}
}

func traceOf(request *http.Request) *httptrace.ClientTrace {
	if trace := httptrace.ContextClientTrace(request.Context()); trace != nil {
		return trace
	}
	return &httptrace.ClientTrace{}
}

// Result returns what an http.RoundTripper would return, after Connect. If the context has ended, it returns the
// context's error.
func (e Exchange) Result(request *http.Request) (*http.Response, error) {
	trace := traceOf(request)
	if e.Failure == ConnectionRefused {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	switch err := request.Context().Err(); {
	case err != nil:
		return nil, err
	case e.Failure == NoResponse:
		return nil, context.DeadlineExceeded
	case e.Failure == ConnectionReset, e.Failure == StaleConnection:
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	if trace.GotFirstResponseByte != nil {
		trace.GotFirstResponseByte()
	}
	return e.response(request), nil
}
