package apigateway

import (
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"mobilegateway/internal/runtimeapi"
)

// proxyEvent is the REST API's event for a function, payload format 1.0. An empty body is null, and isBase64Encoded is
// always present. The library's type cannot express either.
type proxyEvent struct {
	events.APIGatewayProxyRequest
	Body            *string `json:"body"`
	IsBase64Encoded bool    `json:"isBase64Encoded"`
}

// newEvent returns the function's event for a request. Path and path parameters stay percent-encoded, as a REST API
// leaves them; query parameters are decoded. A body that is not UTF-8 is base64.
func (f *Server) newEvent(r *http.Request, m routeMatch, body []byte, id string) []byte {
	now := f.config.Now().UTC()
	source, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		source = r.RemoteAddr
	}
	headers := f.forwardedHeaders(r, source, now)
	query, _ := url.ParseQuery(r.URL.RawQuery) // skips a pair that cannot be decoded
	path := r.URL.EscapedPath()
	e := proxyEvent{APIGatewayProxyRequest: events.APIGatewayProxyRequest{
		Resource: m.Resource, Path: path, HTTPMethod: r.Method,
		Headers: lastValues(headers), MultiValueHeaders: headers,
		QueryStringParameters: lastValues(query), MultiValueQueryStringParameters: query,
		PathParameters: m.parameters,
		RequestContext: events.APIGatewayProxyRequestContext{
			AccountID: "000000000000", APIID: "local", DomainName: f.config.Address, DomainPrefix: "local",
			ExtendedRequestID: id, HTTPMethod: r.Method, Path: path, Protocol: r.Proto, RequestID: id,
			RequestTime: now.Format("02/Jan/2006:15:04:05 -0700"), RequestTimeEpoch: now.UnixMilli(),
			ResourceID: "local", ResourcePath: m.Resource, Stage: f.config.Template.Stage,
			Identity: events.APIGatewayRequestIdentity{SourceIP: source, UserAgent: r.UserAgent()},
		},
	}}
	if len(query) == 0 {
		e.MultiValueQueryStringParameters = nil
	}
	if len(m.parameters) == 0 {
		e.PathParameters = nil
	}
	if len(body) > 0 {
		text := string(body)
		if !utf8.Valid(body) {
			text, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
		}
		e.Body = &text
	}
	document, _ := json.Marshal(e) // texts and numbers always marshal
	return document
}

// forwardedHeaders returns the client's headers and those that API Gateway adds.
func (f *Server) forwardedHeaders(r *http.Request, source string, now time.Time) http.Header {
	headers := r.Header.Clone()
	for _, hop := range []string{"Connection", "Keep-Alive", "Te", "Upgrade", "Proxy-Connection"} {
		headers.Del(hop)
	}
	headers.Set("Host", r.Host)
	forwarded := append(headers.Values("X-Forwarded-For"), source)
	headers.Set("X-Forwarded-For", strings.Join(forwarded, ", "))
	headers.Set("X-Forwarded-Proto", "http")
	if _, port, err := net.SplitHostPort(f.config.Address); err == nil {
		headers.Set("X-Forwarded-Port", port)
	}
	headers.Set("X-Amzn-Trace-Id", runtimeapi.NewTrace(now))
	return headers
}

// lastValues returns the last value of each name, as the single-valued maps of the event have it; nil without values.
func lastValues(values map[string][]string) map[string]string {
	if len(values) == 0 {
		return nil
	}
	single := map[string]string{}
	for name, list := range values {
		single[name] = list[len(list)-1]
	}
	return single
}
