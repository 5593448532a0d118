package apigw

import (
	"strings"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/telemetry"
)

// Request is one request of the API. It belongs to the goroutine of its handler.
type Request struct {
	// ID is API Gateway's request id.
	ID string
	// Method is the HTTP method, Resource the route as the template writes it, Path the path as it came.
	Method   string
	Resource string
	Path     string
	// Params are the path parameters, percent-decoded exactly once; "+" stays "+".
	Params map[string]string
	// Query are the query parameters, decoded; of a repeated one the last.
	Query map[string]string
	// Body is at most the gateway's limit long.
	Body []byte
	// BaseURL is the address of the API without a trailing slash (decision "base-url").
	BaseURL string
	// LogLine takes what the handler knows for the log and the metrics.
	LogLine *telemetry.LogLine
	// Deadline is when Lambda ends the invocation; zero when there is none. Handlers stop some time before it.
	Deadline time.Time

	headers map[string][]string
}

// Header returns a header's value, found without regard to case, without spaces around it; "" where it was not sent. Of
// a repeated header it is the last, as in API Gateway's own headers map.
func (r *Request) Header(name string) string {
	values := r.headers[strings.ToLower(name)]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// HasConflictingHeader tells that a header was sent more than once with values that differ, so that it has no one reading.
func (r *Request) HasConflictingHeader(name string) bool {
	values := r.headers[strings.ToLower(name)]
	for _, value := range values {
		if value != values[0] {
			return true
		}
	}
	return false
}

// SetHeader sets a header of a request that is made by hand, in tests of handlers.
func (r *Request) SetHeader(name, value string) {
	if r.headers == nil {
		r.headers = map[string][]string{}
	}
	r.headers[strings.ToLower(name)] = []string{strings.TrimSpace(value)}
}

// RequireJSON returns a UnsupportedMediaType fault (415) unless the Content-Type is application/json, with or without parameters.
// A request without a Content-Type, or with two that differ, is refused too.
func RequireJSON(r *Request) error {
	mediaType, _, _ := strings.Cut(r.Header("Content-Type"), ";")
	if r.HasConflictingHeader("Content-Type") || !strings.EqualFold(strings.TrimSpace(mediaType), "application/json") {
		return fault.ForPart(fault.UnsupportedMediaType, "Content-Type")
	}
	return nil
}
