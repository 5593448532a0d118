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

// published is the contract that merchants read.
var published = sync.OnceValues(func() (*contract.Checker, error) {
	document, err := contract.Load(filepath.FromSlash("../docs/openapi.yaml"))
	if err != nil {
		return nil, err
	}
	return contract.NewChecker(document)
})

// ofTheAPI are the paths that the contract speaks of; the sandbox's and the inbox's own are others.
var ofTheAPI = regexp.MustCompile(`^/(payment|mobilemoney|smsmessaging|token|callbacks)(/|$)`)

// contracted holds every answer that a story gets against the contract, and fails the exchange where it is not of it. On
// other machinery than the local run, what the API answers by itself looks as that machinery makes it.
type contracted struct{ http.RoundTripper }

// RoundTrip is http.RoundTripper's.
func (c contracted) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := c.RoundTripper.RoundTrip(request)
	if err != nil || os.Getenv("E2E_RUN_JSON") != "" || !ofTheAPI.MatchString(request.URL.Path) {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	checker, err := published()
	if err != nil {
		return nil, err
	}
	if err := checker.Answer(request.Method, request.URL.EscapedPath(), answer.StatusCode, answer.Header, body); err != nil {
		return nil, fmt.Errorf("not as docs/openapi.yaml says: %w\n%s", err, body)
	}
	return answer, nil
}
