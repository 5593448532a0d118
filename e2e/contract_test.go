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

	"mobilegateway/internal/contract"
)

// merchantContract is the contract that merchants read.
var merchantContract = sync.OnceValues(func() (*contract.Checker, error) {
	document, err := contract.Load(filepath.FromSlash("../docs/openapi.yaml"))
	if err != nil {
		return nil, err
	}
	return contract.NewChecker(document)
})

// apiPath are the paths that the contract speaks of; the sandbox's and the inbox's own are others.
var apiPath = regexp.MustCompile(`^/(payment|mobilemoney|smsmessaging|token|callbacks)(/|$)`)

// contractTransport holds every answer that a story gets against the contract, and fails the exchange where it is not of it. On
// other machinery than the local run, what the API answers by itself looks as that machinery makes it.
type contractTransport struct{ http.RoundTripper }

// RoundTrip is http.RoundTripper's.
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
	if err := checker.CheckResponse(request.Method, request.URL.EscapedPath(), response.StatusCode, response.Header, body); err != nil {
		return nil, fmt.Errorf("not as docs/openapi.yaml says: %w\n%s", err, body)
	}
	return response, nil
}
