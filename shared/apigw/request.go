package apigw

import (
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/telemetry"
)

// Request is one request of the API. It belongs to the goroutine of its handler.
type Request struct {
	// Params are the path parameters, percent-decoded exactly once; "+" stays "+".
	Params map[string]string
	// Query are the query parameters, decoded; the last value of a repeated one.
	Query map[string]string
	// Body is at most MaxBodyBytes long.
	Body []byte
	// BaseURL is the address of the API without a trailing slash (decision "base-url").
	BaseURL string
	// LogLine collects fields for the log and the metrics.
	LogLine *telemetry.LogLine
	// StartedAt is when the function got the request.
	StartedAt time.Time
	// Deadline is when Lambda ends the invocation; zero for none. Handlers stop some time before it.
	Deadline time.Time

	headers map[string][]string
	queries map[string][]string // all values
}

// RepeatsQuery reports whether one of the query parameters was sent more than once, so that its meaning is ambiguous.
func (r *Request) RepeatsQuery(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return len(r.queries[name]) > 1 })
}

// Header returns a header's value without surrounding spaces, by its name without regard to case. It returns "" for an
// absent header, and the last value of a repeated one, as API Gateway's own headers map does.
func (r *Request) Header(name string) string {
	values := r.headers[strings.ToLower(name)]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// HasConflictingHeader reports whether a header was sent with different values, so that its meaning is ambiguous.
func (r *Request) HasConflictingHeader(name string) bool {
	values := r.headers[strings.ToLower(name)]
	return slices.ContainsFunc(values, func(value string) bool { return value != values[0] })
}

// SetHeader sets a header, for tests of handlers.
func (r *Request) SetHeader(name, value string) {
	if r.headers == nil {
		r.headers = map[string][]string{}
	}
	r.headers[strings.ToLower(name)] = []string{strings.TrimSpace(value)}
}

// RequireJSON returns an UnsupportedMediaType fault (415) unless the Content-Type is application/json, with or without
// parameters. It refuses an absent Content-Type, and two different ones.
func RequireJSON(r *Request) error {
	mediaType, _, _ := strings.Cut(r.Header("Content-Type"), ";")
	if r.HasConflictingHeader("Content-Type") || !strings.EqualFold(strings.TrimSpace(mediaType), "application/json") {
		return fault.ForPart(fault.UnsupportedMediaType, "Content-Type")
	}
	return nil
}
