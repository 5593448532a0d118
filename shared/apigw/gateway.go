// Package apigw translates between API Gateway's events and requests. It finds the route, limits the body, runs the
// handler, renders errors through package oneapi, and writes one telemetry line.
//
// It does not authenticate and does not parse bodies. Its invariant: every invocation ends with one response and one
// line, also after an invalid event, an error or a panic. Lambda never gets an error, because API Gateway would return
// 502.
package apigw

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/strictjson"
	"mobilegateway/shared/telemetry"
)

// MaxBodyBytes is the limit of a request's body in bytes (decision "limits").
const MaxBodyBytes = 64 << 10

// Response is the result of a handler. Content-Type is application/json unless Header has another.
type Response struct {
	Status int
	Header map[string]string
	Body   []byte
}

// Route is one method and resource, as template.yaml writes the resource
// ("/payment/v1/{endUserId}/transactions/amount"). Package oneapi renders an error of Handle; the Response is ignored
// then.
type Route struct {
	Method   string
	Resource string
	// FixedParams are path parameters with a single valid value, after decoding. Another value is an unknown route.
	FixedParams map[string]string
	Handle      func(ctx context.Context, r *Request) (Response, error)
}

// Config configures a gateway.
type Config struct {
	// Operation names the function in the log and the metrics. A handler of several operations sets its own in the
	// line.
	Operation string
	// StackName is the deployed stack's name, for the metrics.
	StackName string
	// BaseURL is the address of the API; "" takes it from each request (decision "base-url").
	BaseURL string
	// Now is the clock.
	Now func() time.Time
	// Log receives the telemetry lines; nil drops them.
	Log io.Writer
	// CountUses, if set, adds what the request used to its line.
	CountUses func(line *telemetry.LogLine)
}

// Gateway handles API Gateway's events. It implements aws-lambda-go's lambda.Handler.
type Gateway struct {
	config Config
	routes []Route
	warm   atomic.Bool
}

// New makes the gateway of a function's routes.
func New(config Config, routes ...Route) *Gateway {
	config.Log = cmp.Or[io.Writer](config.Log, io.Discard)
	config.BaseURL = strings.TrimRight(config.BaseURL, "/")
	return &Gateway{config: config, routes: routes}
}

// Invoke handles one event. It never returns an error. It refuses requests in the order of decision
// "order-of-refusals": 404 for an unknown route or a broken path, 413, then the handler's errors.
func (g *Gateway) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	startedAt := g.config.Now()
	line := telemetry.NewLogLine(g.config.Operation, startedAt)
	line.SetStackName(g.config.StackName)
	line.SetColdStart(!g.warm.Swap(true))

	response, err := catchPanic(func() (Response, error) { return g.serve(ctx, payload, line, startedAt) })
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
	if g.config.CountUses != nil {
		g.config.CountUses(line)
	}
	line.Finish(g.config.Now(), g.config.Log)
	return encodeResponse(response), nil
}

// serve decodes the event and runs the handler.
func (g *Gateway) serve(
	ctx context.Context, payload []byte, line *telemetry.LogLine, startedAt time.Time,
) (Response, error) {
	e := &event{}
	if json.Unmarshal(payload, e) != nil {
		return Response{}, fault.NewInternal(logsafe.New("apigw: the event does not have API Gateway's form"))
	}
	line.SetRequestID(e.RequestContext.RequestID)
	request, handle, err := g.buildRequest(e)
	if err != nil {
		return Response{}, err
	}
	request.LogLine, request.StartedAt = line, startedAt
	if deadline, ok := ctx.Deadline(); ok {
		request.Deadline = deadline
	}
	response, err := handle(ctx, request)
	if err == nil && (response.Status < 200 || response.Status > 599) {
		return Response{}, fault.NewInternal(logsafe.New("apigw: the handler returned no HTTP status"))
	}
	return response, err
}

// catchPanic runs a function and returns its results. A panic becomes an error, so that one request does not end the
// process.
func catchPanic(run func() (Response, error)) (response Response, err error) {
	defer func() {
		if panicValue := recover(); panicValue != nil {
			err = describePanic(panicValue)
		}
	}()
	return run()
}

// describePanic returns the type and the place of a panic. It omits the value, which may contain a client's data.
func describePanic(panicValue any) error {
	const maxFrames = 32
	kind := logsafe.TypeOf(panicValue)
	callers := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	afterPanic := false
	for {
		frame, more := frames.Next()
		if afterPanic && !strings.HasPrefix(frame.Function, "runtime.") {
			return logsafe.Errorf("panic %s in %s line %d", kind, logsafe.Name(frame.Function), frame.Line)
		}
		afterPanic = afterPanic || frame.Function == "runtime.gopanic"
		if !more {
			return logsafe.Errorf("panic %s", kind)
		}
	}
}

func (g *Gateway) buildRequest(e *event) (*Request, func(context.Context, *Request) (Response, error), error) {
	i := slices.IndexFunc(g.routes, func(r Route) bool { return r.Method == e.HTTPMethod && r.Resource == e.Resource })
	params, decoded := e.decodePathParameters()
	if i < 0 || !decoded || !g.routes[i].matchesFixedParams(params) {
		return nil, nil, fault.New(fault.RouteNotFound)
	}
	body, err := e.decodeBody()
	if len(body) > MaxBodyBytes {
		return nil, nil, fault.ForPart(fault.BodyTooLarge, strictjson.BodyPart)
	}
	if err != nil {
		return nil, nil, fault.ForPart(fault.InvalidPart, strictjson.BodyPart)
	}
	return &Request{
		Params: params, Query: e.Query, Body: body, BaseURL: cmp.Or(g.config.BaseURL, e.baseURL()),
		headers: e.mergeHeaders(), queries: e.MultiValueQuery,
	}, g.routes[i].Handle, nil
}

func (r Route) matchesFixedParams(params map[string]string) bool {
	for name, valid := range r.FixedParams {
		if params[name] != valid {
			return false
		}
	}
	return true
}

func encodeResponse(response Response) []byte {
	header := map[string]string{"Content-Type": "application/json"}
	maps.Copy(header, response.Header)
	proxied := proxyResponse{StatusCode: response.Status, Headers: header, Body: string(response.Body)}
	encoded, _ := json.Marshal(proxied) // numbers and texts always have a form
	return encoded
}
