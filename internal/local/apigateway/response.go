package apigateway

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// proxyResponse is what the client gets.
type proxyResponse struct {
	status int
	header http.Header
	body   []byte
}

// errMalformedResponse is API Gateway's "malformed Lambda proxy response".
var errMalformedResponse = errors.New("the function's answer is not a proxy response")

// parseProxyResponse reads a function's answer as API Gateway does.
func parseProxyResponse(payload []byte) (proxyResponse, error) {
	var raw struct {
		StatusCode        int                 `json:"statusCode"`
		Headers           map[string]any      `json:"headers"`
		MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
		Body              string              `json:"body"`
		IsBase64Encoded   bool                `json:"isBase64Encoded"`
	}
	if err := json.Unmarshal(payload, &raw); err != nil || raw.StatusCode < 100 || raw.StatusCode > 599 {
		return proxyResponse{}, errMalformedResponse
	}
	a := proxyResponse{status: raw.StatusCode, header: http.Header{}, body: []byte(raw.Body)}
	if raw.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(raw.Body)
		if err != nil {
			return proxyResponse{}, errMalformedResponse
		}
		a.body = decoded
	}
	for name, value := range raw.Headers {
		a.header.Set(name, fmt.Sprint(value))
	}
	for name, values := range raw.MultiValueHeaders {
		a.header[http.CanonicalHeaderKey(name)] = values
	}
	if a.header.Get("Content-Type") == "" {
		a.header.Set("Content-Type", "application/json") // API Gateway's default
	}
	a.header.Del("Content-Length")
	return a, nil
}

// gatewayResponse is what the API answers by itself: the template's response of that type, else the default of its class.
func (f *Server) gatewayResponse(responseType string, status int) proxyResponse {
	responses := f.config.Template.GatewayResponses
	response, found := responses[responseType]
	if !found {
		response = responses[fmt.Sprintf("DEFAULT_%dXX", status/100)]
	}
	if response.Status != 0 {
		status = response.Status
	}
	if response.Body == "" {
		response.Body = `{"message":"` + http.StatusText(status) + `"}`
	}
	a := proxyResponse{status: status, header: http.Header{}, body: []byte(response.Body)}
	for name, value := range response.Headers {
		a.header.Set(name, value)
	}
	a.header.Set("Content-Type", "application/json")
	a.header.Set("X-Amzn-Errortype", errorTypeHeader(responseType))
	return a
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

// writeTo sends the answer.
func (a proxyResponse) writeTo(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a client that is gone
}
