package apigateway

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

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
