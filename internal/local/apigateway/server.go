// Package front is the HTTP server that stands where API Gateway stands: it takes its routes from the template, makes the
// REST API's proxy event (payload 1.0), invokes the function and turns its answer into an HTTP answer.
//
// What API Gateway answers by itself (unknown route, body too large, throttled, no answer from the function) is answered
// with the template's own gateway responses. It authenticates nobody, caches nothing and keeps no state but the throttle.
//
// What package net/http refuses before any handler is answered in its own plain text, where API Gateway answers 400 as a
// gateway response: a path that cannot be decoded (%zz), a control character in a header, two lengths that differ (400),
// and headers over a megabyte (431). None of it reaches a function, on either side.
//
// The invariant: a request reaches at most one function, once.
package apigateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"mobilegateway/internal/runtimeapi"
	"mobilegateway/internal/template"
)

// Limits of a REST API that no template can raise.
const (
	// MaxBodyBytes is the largest request body in bytes.
	MaxBodyBytes = 10 << 20
	// IntegrationTimeout is how long the API waits for a function.
	IntegrationTimeout = 29 * time.Second
)

// Invoker runs a function; *runtimeapi.Function is one.
type Invoker interface {
	InvokeEvent(ctx context.Context, event runtimeapi.Event) (runtimeapi.Result, error)
}

// AccessLogEntry is what the log may know of one request: nothing that a client sent but the method of a known route.
type AccessLogEntry struct {
	Method   string
	Resource string // the template's path, "" for an unknown route
	Function string // logical id, "" where none was invoked
	Status   int
	Duration time.Duration
}

// Config is what a front needs. All fields but Log are required.
type Config struct {
	Template *template.Template
	// Functions are the programs by logical id. A route whose function is not here answers 502.
	Functions map[string]Invoker
	// Address is the front's own host and port, the event's domainName.
	Address string
	// Now is the clock of the throttle and of the events.
	Now func() time.Time
	// LogRequest is called after each request.
	LogRequest func(AccessLogEntry)
}

// Server is the handler. It is safe for parallel use.
type Server struct {
	config Config
	routes []route
	bucket *tokenBucket
}

// New makes a front over a template.
func New(config Config) *Server {
	if config.LogRequest == nil {
		config.LogRequest = func(AccessLogEntry) {}
	}
	return &Server{
		config: config,
		routes: newRoutes(config.Template.Routes),
		bucket: newTokenBucket(config.Template.Throttle, config.Now()),
	}
}

// ServeHTTP answers one request.
func (f *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := f.config.Now()
	id := runtimeapi.NewRequestID()
	w.Header().Set("X-Amzn-Requestid", id)
	line := AccessLogEntry{Method: r.Method}
	response := f.handle(r, id, &line)
	response.writeTo(w)
	line.Status, line.Duration = response.status, f.config.Now().Sub(started)
	if line.Resource == "" {
		line.Method = "" // an unknown route's method is the client's text
	}
	f.config.LogRequest(line)
}

// handle routes, throttles, reads the body and invokes, in API Gateway's order.
func (f *Server) handle(r *http.Request, id string, line *AccessLogEntry) proxyResponse {
	match, found := matchRoute(f.routes, r.Method, r.URL.EscapedPath())
	if !found {
		return f.gatewayResponse("MISSING_AUTHENTICATION_TOKEN", http.StatusForbidden)
	}
	line.Resource = match.Resource
	if !f.bucket.take(f.config.Now()) {
		return f.gatewayResponse("THROTTLED", http.StatusTooManyRequests)
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, MaxBodyBytes))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		tooLargeResponse := f.gatewayResponse("REQUEST_TOO_LARGE", http.StatusRequestEntityTooLarge)
		tooLargeResponse.header.Set("Connection", "close") // the rest of the body is not worth reading
		return tooLargeResponse
	}
	if err != nil {
		return f.gatewayResponse("BAD_REQUEST_BODY", http.StatusBadRequest)
	}
	function, known := f.config.Functions[match.Function]
	if !known {
		return f.gatewayResponse("DEFAULT_5XX", http.StatusBadGateway)
	}
	line.Function = match.Function
	return f.invoke(r, function, runtimeapi.Event{ID: runtimeapi.NewRequestID(), Payload: f.proxyEvent(r, match, body, id)})
}

// invoke runs the function. A client that hangs up does not stop it, as on API Gateway.
func (f *Server) invoke(r *http.Request, function Invoker, event runtimeapi.Event) proxyResponse {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), IntegrationTimeout)
	defer cancel()
	result, err := function.InvokeEvent(ctx, event)
	if errors.Is(err, context.DeadlineExceeded) {
		return f.gatewayResponse("INTEGRATION_TIMEOUT", http.StatusGatewayTimeout)
	}
	if err != nil || result.FunctionError {
		return f.gatewayResponse("DEFAULT_5XX", http.StatusBadGateway)
	}
	response, err := parseProxyResponse(result.Payload)
	if err != nil {
		return f.gatewayResponse("DEFAULT_5XX", http.StatusBadGateway)
	}
	return response
}
