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

	"mobilegateway/internal/runtimeapi"
)

// proxyEvent is the REST API's event for a function, payload format 1.0.
type proxyEvent struct {
	Resource          string              `json:"resource"`
	Path              string              `json:"path"`
	HTTPMethod        string              `json:"httpMethod"`
	Headers           map[string]string   `json:"headers"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
	Query             map[string]string   `json:"queryStringParameters"`
	MultiValueQuery   map[string][]string `json:"multiValueQueryStringParameters"`
	PathParameters    map[string]string   `json:"pathParameters"`
	StageVariables    map[string]string   `json:"stageVariables"`
	RequestContext    requestContext      `json:"requestContext"`
	Body              *string             `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

type requestContext struct {
	AccountID         string   `json:"accountId"`
	APIID             string   `json:"apiId"`
	DomainName        string   `json:"domainName"`
	DomainPrefix      string   `json:"domainPrefix"`
	ExtendedRequestID string   `json:"extendedRequestId"`
	HTTPMethod        string   `json:"httpMethod"`
	Identity          identity `json:"identity"`
	Path              string   `json:"path"`
	Protocol          string   `json:"protocol"`
	RequestID         string   `json:"requestId"`
	RequestTime       string   `json:"requestTime"`
	RequestTimeEpoch  int64    `json:"requestTimeEpoch"`
	ResourceID        string   `json:"resourceId"`
	ResourcePath      string   `json:"resourcePath"`
	Stage             string   `json:"stage"`
}

type identity struct {
	SourceIP  string `json:"sourceIp"`
	UserAgent string `json:"userAgent"`
}

// proxyEvent makes the function's event of a request. Path and path parameters stay percent-encoded, as a REST API leaves
// them; query parameters come decoded. A body that is not UTF-8 goes as base64, so that nothing of it is lost.
func (f *Server) proxyEvent(r *http.Request, m routeMatch, body []byte, id string) []byte {
	now := f.config.Now().UTC()
	source, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		source = r.RemoteAddr
	}
	headers := f.forwardedHeaders(r, source, now)
	query, _ := url.ParseQuery(r.URL.RawQuery) // a pair that cannot be decoded is left out
	path := r.URL.EscapedPath()
	e := proxyEvent{
		Resource: m.Resource, Path: path, HTTPMethod: r.Method,
		Headers: lastValues(headers), MultiValueHeaders: headers,
		Query: lastValues(query), MultiValueQuery: nilIfEmpty(query),
		PathParameters: m.parameters,
		RequestContext: requestContext{
			AccountID: "000000000000", APIID: "local", DomainName: f.config.Address, DomainPrefix: "local",
			ExtendedRequestID: id, HTTPMethod: r.Method, Path: path, Protocol: r.Proto, RequestID: id,
			RequestTime: now.Format("02/Jan/2006:15:04:05 -0700"), RequestTimeEpoch: now.UnixMilli(),
			ResourceID: "local", ResourcePath: m.Resource, Stage: f.config.Template.Stage,
			Identity: identity{SourceIP: source, UserAgent: r.UserAgent()},
		},
	}
	if len(m.parameters) == 0 {
		e.PathParameters = nil
	}
	e.Body, e.IsBase64Encoded = encodeBody(body)
	document, _ := json.Marshal(e) // texts and numbers alone always marshal
	return document
}

// forwardedHeaders are the client's, with those that API Gateway adds.
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

// encodeBody gives a body as the event carries it; an empty one is null.
func encodeBody(body []byte) (text *string, encoded bool) {
	if len(body) == 0 {
		return nil, false
	}
	encodedBody := string(body)
	if !utf8.Valid(body) {
		encodedBody, encoded = base64.StdEncoding.EncodeToString(body), true
	}
	return &encodedBody, encoded
}

// lastValues keeps the last value of each name, as the single-valued maps of the event do; none gives null.
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

func nilIfEmpty(values map[string][]string) map[string][]string {
	if len(values) == 0 {
		return nil
	}
	return values
}
