// Package apigw is the only place that knows API Gateway's event: it makes a Request of it, finds the route, limits the
// body, runs the handler, renders errors through package oneapi, and writes one telemetry line.
//
// It authenticates nobody and reads no body. Its invariant: every invocation ends in an answer and in a line, whatever
// the event, the handler or a panic do; Lambda is never given an error, which would make API Gateway answer 502.
package apigw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/strictjson"
	"mobilegateway/shared/telemetry"
)

// DefaultMaxBodyBytes is the limit of a request's body in bytes where Config.MaxBodyBytes is 0 (decision "limits").
const DefaultMaxBodyBytes = 64 << 10

// Response is the answer of a handler. Content-Type is application/json unless Header says another.
type Response struct {
	Status int
	Header map[string]string
	Body   []byte
}

// Route is one method and resource, as template.yaml writes the resource
// ("/payment/v1/{endUserId}/transactions/amount"). An error that Handle returns is rendered by package oneapi and its
// Response ignored.
type Route struct {
	Method   string
	Resource string
	// FixedParams are the path parameters that have one valid value, after decoding; another makes an unknown route of it.
	FixedParams map[string]string
	Handle      func(ctx context.Context, r *Request) (Response, error)
}

// Config is what a gateway needs besides its routes.
type Config struct {
	// Operation names the function in the log and the metrics. A handler of several operations sets its own on the event.
	Operation string
	// StackName is the deployed stack's name, for the metrics.
	StackName string
	// BaseURL is the address of the API, with or without a trailing slash; "" takes it from each request (decision "base-url").
	BaseURL string
	// Now is the clock.
	Now func() time.Time
	// MaxBodyBytes is the limit of a body in bytes; 0 is DefaultMaxBodyBytes.
	MaxBodyBytes int
	// Log takes the telemetry lines; nil drops them.
	Log io.Writer
}

// Gateway answers API Gateway's events. It implements aws-lambda-go's lambda.Handler, for lambda.Start.
type Gateway struct {
	config Config
	routes []Route
	warm   atomic.Bool
}

// New makes the gateway of a function's routes.
func New(config Config, routes ...Route) *Gateway {
	if config.MaxBodyBytes == 0 {
		config.MaxBodyBytes = DefaultMaxBodyBytes
	}
	if config.Log == nil {
		config.Log = io.Discard
	}
	config.BaseURL = strings.TrimRight(config.BaseURL, "/")
	return &Gateway{config: config, routes: routes}
}

// Invoke answers one event. It never returns an error. Requests are refused in the order of decision
// "order-of-refusals": 404 for a route that is not ours or whose path is broken, 413, then what the handler says.
func (g *Gateway) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	started := g.config.Now()
	line := telemetry.NewLogLine(g.config.Operation, started)
	line.SetStackName(g.config.StackName)
	line.SetColdStart(!g.warm.Swap(true))

	response, err := g.serve(ctx, payload, line)
	if err != nil {
		rendered := oneapi.Render(err)
		response = Response{Status: rendered.Status, Header: rendered.Header, Body: rendered.Body}
		line.SetErrorID(rendered.MessageID)
		line.SetCause(err)
	}
	line.SetStatus(response.Status)
	if response.Status == http.StatusInternalServerError {
		line.Increment(telemetry.InternalErrors)
	}
	line.SetDuration(g.config.Now().Sub(started))
	// A line that cannot be written must not cost the merchant the answer.
	_ = line.Write(g.config.Log)
	return encodeResponse(response), nil
}

// serve decodes the event, runs the handler, and turns a panic of either into an internal fault.
func (g *Gateway) serve(ctx context.Context, payload []byte, line *telemetry.LogLine) (response Response, err error) {
	defer func() {
		if panicValue := recover(); panicValue != nil {
			response, err = Response{}, fault.NewInternal(describePanic(panicValue))
		}
	}()
	e, err := decodeEvent(payload)
	if err != nil {
		return Response{}, fault.NewInternal(errors.New("apigw: event is not of the form"))
	}
	line.SetRequestID(e.RequestContext.RequestID)
	request, handle, err := g.buildRequest(e)
	if err != nil {
		return Response{}, err
	}
	request.LogLine = line
	if deadline, ok := ctx.Deadline(); ok {
		request.Deadline = deadline
	}
	response, err = handle(ctx, request)
	if err == nil && (response.Status < 200 || response.Status > 599) {
		return Response{}, fault.NewInternal(errors.New("apigw: handler gave no HTTP status"))
	}
	return response, err
}

// buildRequest finds the route and makes the request.
func (g *Gateway) buildRequest(e *event) (*Request, func(context.Context, *Request) (Response, error), error) {
	route, found := g.findRoute(e)
	params, decoded := e.decodePathParameters()
	if !found || !decoded || !route.matchesFixedParams(params) {
		return nil, nil, fault.New(fault.RouteNotFound)
	}
	if e.decodedBodySize() > g.config.MaxBodyBytes {
		return nil, nil, fault.ForPart(fault.BodyTooLarge, strictjson.BodyPart)
	}
	body, err := e.decodeBody()
	if err != nil {
		return nil, nil, fault.ForPart(fault.InvalidPart, strictjson.BodyPart)
	}
	base := g.config.BaseURL
	if base == "" {
		base = e.baseURL()
	}
	return &Request{
		ID: e.RequestContext.RequestID, Method: e.HTTPMethod, Resource: e.Resource, Path: e.Path, Params: params,
		Query: e.Query, Body: body, BaseURL: base, headers: e.mergeHeaders(),
	}, route.Handle, nil
}

func (g *Gateway) findRoute(e *event) (Route, bool) {
	for _, route := range g.routes {
		if route.Method == e.HTTPMethod && route.Resource == e.Resource {
			return route, true
		}
	}
	return Route{}, false
}

// matchesFixedParams tells whether the parameters that have one valid value have it.
func (r Route) matchesFixedParams(params map[string]string) bool {
	for name, valid := range r.FixedParams {
		if params[name] != valid {
			return false
		}
	}
	return true
}

// describePanic names the type of what was panicked with, and the place; never its value, which may hold a client's.
func describePanic(panicValue any) error {
	const maxFrames = 32
	callers := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	afterPanic := false
	for {
		frame, more := frames.Next()
		if afterPanic && !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Errorf("panic %T in %s line %d", panicValue, frame.Function, frame.Line)
		}
		afterPanic = afterPanic || frame.Function == "runtime.gopanic"
		if !more {
			return fmt.Errorf("panic %T", panicValue)
		}
	}
}

// encodeResponse writes API Gateway's answer.
func encodeResponse(response Response) []byte {
	header := map[string]string{"Content-Type": "application/json"}
	maps.Copy(header, response.Header)
	encoded, err := json.Marshal(proxyResponse{StatusCode: response.Status, Headers: header, Body: string(response.Body)})
	if err != nil {
		return []byte(`{"statusCode":500}`)
	}
	return encoded
}
