// Package apigateway replaces API Gateway in the local run. It takes its routes from the template, sends a function the
// REST API's proxy event (payload 1.0), and returns the function's response over HTTP.
//
// It sends the template's gateway responses where API Gateway responds without a function: unknown route, body too
// large, throttled, function failed. It does not authenticate and caches nothing. Its only state is the throttle.
//
// Package net/http rejects some requests in plain text, before any handler. Status 400: a path that cannot be decoded
// (%zz), a control character in a header, two different lengths. Status 431: headers over a megabyte. API Gateway sends
// a gateway response with status 400. No such request reaches a function.
//
// The invariant: a request invokes at most one function, once.
package apigateway

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"mobilegateway/world/lambda"
	"mobilegateway/world/template"
)

// Limits of a REST API that no template can raise.
const (
	// MaxBodyBytes is the maximum size of a request body.
	MaxBodyBytes = 10 << 20
	// IntegrationTimeout is how long the API waits for a function.
	IntegrationTimeout = 29 * time.Second
)

// AccessLogEntry is one request for the log. It has nothing that the client sent but the method of a known route.
type AccessLogEntry struct {
	Method   string
	Resource string // the template's path, "" for an unknown route
	Status   int
	Duration time.Duration
}

// Config configures a Server. All fields are required.
type Config struct {
	Template *template.Template
	// Functions are the programs by logical id. A route without its function responds 502.
	Functions map[string]lambda.Invoker
	// Address is the server's own host and port, the event's domainName.
	Address string
	// Now is the clock of the throttle and of the events.
	Now func() time.Time
	// LogRequest is called after each request.
	LogRequest func(AccessLogEntry)
}

// Server is the HTTP handler. It is safe for concurrent use.
type Server struct {
	config Config
	limit  *rate.Limiter // of the stage, over all callers
}

// New returns a Server for a template.
func New(config Config) *Server {
	throttle, limit := config.Template.Throttle, rate.Inf
	if throttle.RequestsPerSecond > 0 {
		limit = rate.Limit(throttle.RequestsPerSecond)
	}
	return &Server{config: config, limit: rate.NewLimiter(limit, throttle.Burst)}
}

// ServeHTTP implements http.Handler.
func (f *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := f.config.Now()
	id := lambda.NewRequestID()
	w.Header().Set("X-Amzn-Requestid", id)
	entry := AccessLogEntry{Method: r.Method}
	response := f.handle(r, id, &entry)
	maps.Copy(w.Header(), response.header)
	w.WriteHeader(response.status)
	_, _ = w.Write(response.body) // the client may have gone
	entry.Status, entry.Duration = response.status, f.config.Now().Sub(started)
	if entry.Resource == "" {
		entry.Method = "" // an unknown route's method is the client's text
	}
	f.config.LogRequest(entry)
}

// handle routes, throttles, reads the body and invokes, in the order of API Gateway.
func (f *Server) handle(r *http.Request, id string, entry *AccessLogEntry) proxyResponse {
	match, found := matchRoute(f.config.Template.Routes, r.Method, r.URL.EscapedPath())
	if !found {
		return f.gatewayResponse("MISSING_AUTHENTICATION_TOKEN", http.StatusForbidden)
	}
	entry.Resource = match.Resource
	if !f.limit.AllowN(f.config.Now(), 1) {
		return f.gatewayResponse("THROTTLED", http.StatusTooManyRequests)
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, MaxBodyBytes))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		response := f.gatewayResponse("REQUEST_TOO_LARGE", http.StatusRequestEntityTooLarge)
		response.header.Set("Connection", "close") // the rest of the body is not read
		return response
	}
	if err != nil {
		return f.gatewayResponse("BAD_REQUEST_BODY", http.StatusBadRequest)
	}
	function, known := f.config.Functions[match.Function]
	if !known {
		return f.gatewayResponse("DEFAULT_5XX", http.StatusBadGateway)
	}
	event := lambda.Event{ID: lambda.NewRequestID(), Payload: f.newEvent(r, match, body, id)}
	return f.invoke(r, function, event)
}

// invoke runs the function. A client that hangs up does not stop it, as on API Gateway.
func (f *Server) invoke(r *http.Request, function lambda.Invoker, event lambda.Event) proxyResponse {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), IntegrationTimeout)
	defer cancel()
	result, err := function.Invoke(ctx, event)
	if errors.Is(err, context.DeadlineExceeded) {
		return f.gatewayResponse("INTEGRATION_TIMEOUT", http.StatusGatewayTimeout)
	}
	response, valid := parseProxyResponse(result.Payload)
	if err != nil || result.FunctionError || !valid {
		return f.gatewayResponse("DEFAULT_5XX", http.StatusBadGateway)
	}
	return response
}

// routeMatch is a route with the values of its parameters, still percent-encoded.
type routeMatch struct {
	template.Route
	parameters map[string]string
}

// matchRoute finds the route of a request. Like API Gateway it prefers a literal segment to a parameter and ignores one
// trailing slash (decision "token-endpoint").
func matchRoute(routes []template.Route, method, path string) (best routeMatch, found bool) {
	segments, most := strings.Split(strings.TrimSuffix(path, "/"), "/"), -1
	for _, r := range routes {
		parameters, literals, matches := matchSegments(strings.Split(r.Resource, "/"), segments)
		if r.Method == method && matches && literals > most {
			best, found, most = routeMatch{Route: r, parameters: parameters}, true, literals
		}
	}
	return best, found
}

// matchSegments reports whether a path matches a resource. It returns the parameters' values and the number of literal
// segments.
func matchSegments(resource, path []string) (parameters map[string]string, literals int, matches bool) {
	if len(path) != len(resource) {
		return nil, 0, false
	}
	parameters = map[string]string{}
	for i, want := range resource {
		name, isParameter := strings.CutPrefix(want, "{")
		switch {
		case isParameter && path[i] != "":
			parameters[strings.TrimSuffix(name, "}")] = path[i]
		case isParameter || want != path[i]:
			return nil, 0, false
		default:
			literals++
		}
	}
	return parameters, literals, true
}
