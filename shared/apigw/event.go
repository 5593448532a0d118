package apigw

import (
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// event has the fields of API Gateway's event that are read (REST API, payload format 1.0). All others are ignored.
type event struct {
	Resource          string              `json:"resource"`
	HTTPMethod        string              `json:"httpMethod"`
	Headers           map[string]string   `json:"headers"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
	Query             map[string]string   `json:"queryStringParameters"`
	MultiValueQuery   map[string][]string `json:"multiValueQueryStringParameters"`
	PathParameters    map[string]string   `json:"pathParameters"`
	RequestContext    eventContext        `json:"requestContext"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

type eventContext struct {
	RequestID  string `json:"requestId"`
	DomainName string `json:"domainName"`
	Stage      string `json:"stage"`
}

// proxyResponse is the response format of API Gateway.
type proxyResponse struct {
	StatusCode      int               `json:"statusCode"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

func (e *event) decodeBody() ([]byte, error) {
	if !e.IsBase64Encoded {
		return []byte(e.Body), nil
	}
	return base64.StdEncoding.DecodeString(e.Body)
}

// decodePathParameters decodes the path parameters once, by the rules of paths: "+" stays "+". API Gateway passes them
// as sent (tel%3A%2B225...), SAM's local API already decoded (tel:+225...). One decoding fits both, because our values
// without "%" decode to themselves. It returns false for broken percent-encoding, invalid UTF-8 and control characters.
func (e *event) decodePathParameters() (map[string]string, bool) {
	decoded := make(map[string]string, len(e.PathParameters))
	for name, value := range e.PathParameters {
		text, err := url.PathUnescape(value)
		if err != nil || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			return nil, false
		}
		decoded[name] = text
	}
	return decoded, true
}

// mergeHeaders collects the values of each header under its name in lower case, in a fixed order of names.
func (e *event) mergeHeaders() map[string][]string {
	collected := make(map[string][]string, len(e.MultiValueHeaders))
	for _, name := range slices.Sorted(maps.Keys(e.MultiValueHeaders)) {
		key := strings.ToLower(name)
		for _, value := range e.MultiValueHeaders[name] {
			collected[key] = append(collected[key], strings.TrimSpace(value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		key := strings.ToLower(name)
		if len(e.MultiValueHeaders) == 0 || len(collected[key]) == 0 {
			collected[key] = append(collected[key], strings.TrimSpace(e.Headers[name]))
		}
	}
	return collected
}

// baseURL returns the address of the API without a trailing slash. It is https, the domain of the request context, and
// the stage if the domain is API Gateway's own; a custom domain maps the stage (decision "base-url"). It ignores the
// Host header, because a client chooses it. "" means that the event has no domain.
func (e *event) baseURL() string {
	domain := e.RequestContext.DomainName
	if domain == "" {
		return ""
	}
	base := "https://" + domain
	isAWSDomain := strings.HasSuffix(domain, ".amazonaws.com") || strings.HasSuffix(domain, ".amazonaws.com.cn")
	if isAWSDomain && e.RequestContext.Stage != "" {
		base += "/" + e.RequestContext.Stage
	}
	return base
}
