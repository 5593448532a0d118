package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"mobilegateway/proof/contract"
)

// merchantContract returns the checker for docs/openapi.yaml.
var merchantContract = sync.OnceValues(func() (*contract.Checker, error) {
	document, err := contract.Load(filepath.FromSlash("../docs/openapi.yaml"))
	if err != nil {
		return nil, err
	}
	return contract.NewChecker(document)
})

// apiPath matches the paths of the contract, but not those of the sandbox and the inbox.
var apiPath = regexp.MustCompile(`^/(payment|mobilemoney|smsmessaging|token|callbacks)(/|$)`)

// contractTransport checks every response against the contract and fails the exchange if it differs. It checks only
// local runs, because other targets generate some responses themselves.
type contractTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (c contractTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(request)
	if err != nil || os.Getenv("E2E_RUN_JSON") != "" || !apiPath.MatchString(request.URL.Path) {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	checker, err := merchantContract()
	if err != nil {
		return nil, err
	}
	if err := checker.CheckResponse(request.Method, request.URL.EscapedPath(), response.StatusCode, response.Header,
		body); err != nil {
		return nil, fmt.Errorf("the response violates docs/openapi.yaml: %w\n%s", err, body)
	}
	return response, nil
}
