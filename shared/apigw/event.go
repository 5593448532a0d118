package apigw

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// event is what is read of API Gateway's event (REST API, payload format 1.0). Everything else in it is ignored.
type event struct {
	Resource          string              `json:"resource"`
	Path              string              `json:"path"`
	HTTPMethod        string              `json:"httpMethod"`
	Headers           map[string]string   `json:"headers"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
	Query             map[string]string   `json:"queryStringParameters"`
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

// proxyResponse is what API Gateway takes as the answer.
type proxyResponse struct {
	StatusCode      int               `json:"statusCode"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

func decodeEvent(payload []byte) (*event, error) {
	var decoded event
	err := json.Unmarshal(payload, &decoded)
	return &decoded, err
}

// decodedBodySize is the size of the body in bytes, known without decoding it.
func (e *event) decodedBodySize() int {
	if !e.IsBase64Encoded {
		return len(e.Body)
	}
	return base64.StdEncoding.DecodedLen(len(e.Body)) - strings.Count(e.Body[max(0, len(e.Body)-2):], "=")
}

func (e *event) decodeBody() ([]byte, error) {
	if !e.IsBase64Encoded {
		return []byte(e.Body), nil
	}
	return base64.StdEncoding.DecodeString(e.Body)
}

// decodePathParameters decodes the path parameters once, by the rules of paths: "+" stays "+". API Gateway hands them over as
// they were sent (tel%3A%2B225...), SAM's local API already decoded (tel:+225...): decoding once serves both, since a
// value of ours without "%" decodes to itself. false for broken percent-encoding, for what is not UTF-8 then, and for
// control characters.
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

// mergeHeaders collects every header's values under its name in lower case, in a fixed order of names.
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

// baseURL is where the API is reached, without a trailing slash: https, the domain that API Gateway says it answered
// for, and the stage where the domain is API Gateway's own; a custom domain maps the stage (decision "base-url"). The
// Host header plays no part: a client chooses it. "" where the event names no domain.
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
