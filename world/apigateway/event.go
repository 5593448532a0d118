package apigateway

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"mobilegateway/world/lambda"
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
	source, _, _ := net.SplitHostPort(r.RemoteAddr) // package net/http sets it
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
	headers.Set("X-Amzn-Trace-Id", lambda.NewTrace(now))
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

type proxyResponse struct {
	status int
	header http.Header
	body   []byte
}

// parseProxyResponse reads a function's response as API Gateway does. valid is false for API Gateway's "malformed
// Lambda proxy response".
func parseProxyResponse(payload []byte) (response proxyResponse, valid bool) {
	var raw struct {
		StatusCode        int                 `json:"statusCode"`
		Headers           map[string]any      `json:"headers"`
		MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
		Body              string              `json:"body"`
		IsBase64Encoded   bool                `json:"isBase64Encoded"`
	}
	if err := json.Unmarshal(payload, &raw); err != nil || raw.StatusCode < 100 || raw.StatusCode > 599 {
		return proxyResponse{}, false
	}
	response = proxyResponse{status: raw.StatusCode, header: http.Header{}, body: []byte(raw.Body)}
	if raw.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(raw.Body)
		if err != nil {
			return proxyResponse{}, false
		}
		response.body = decoded
	}
	for name, value := range raw.Headers {
		response.header.Set(name, fmt.Sprint(value))
	}
	for name, values := range raw.MultiValueHeaders {
		response.header[http.CanonicalHeaderKey(name)] = values
	}
	if response.header.Get("Content-Type") == "" {
		response.header.Set("Content-Type", "application/json") // API Gateway's default
	}
	response.header.Del("Content-Length")
	return response, true
}

// gatewayResponse returns a response of the API itself: the template's one of that type, else the default of its
// class.
func (f *Server) gatewayResponse(responseType string, status int) proxyResponse {
	responses := f.config.Template.GatewayResponses
	configured, found := responses[responseType]
	if !found {
		configured = responses[fmt.Sprintf("DEFAULT_%dXX", status/100)]
	}
	status = cmp.Or(configured.Status, status)
	body := cmp.Or(configured.Body, `{"message":"`+http.StatusText(status)+`"}`)
	response := proxyResponse{status: status, header: http.Header{}, body: []byte(body)}
	for name, value := range configured.Headers {
		response.header.Set(name, value)
	}
	response.header.Set("Content-Type", "application/json")
	response.header.Set("X-Amzn-Errortype", errorTypeHeader(responseType))
	return response
}

// errorTypeHeader spells a response type as API Gateway's header does: MISSING_AUTHENTICATION_TOKEN is
// MissingAuthenticationTokenException.
func errorTypeHeader(responseType string) string {
	var name strings.Builder
	for part := range strings.SplitSeq(responseType, "_") {
		name.WriteString(part[:1] + strings.ToLower(part[1:]))
	}
	return name.String() + "Exception"
}
