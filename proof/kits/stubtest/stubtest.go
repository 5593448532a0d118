// Package stubtest helps tests of operators' stubs. Its HTTP client calls handlers in memory, so that a test can run in
// a synctest bubble. Its receiver keeps callbacks.
package stubtest

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Client returns a client that calls h in memory and follows no redirect. An aborted response is an error, as a closed
// connection is.
func Client(h http.Handler) *http.Client {
	last := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: memory{h}, CheckRedirect: last}
}

type memory struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper. It honours the request's context.
func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	server := r.Clone(r.Context())
	if server.Body == nil {
		server.Body = http.NoBody
	}
	done := make(chan *http.Response, 1)
	go func() {
		defer func() {
			if recover() != nil {
				done <- nil
			}
		}()
		w := httptest.NewRecorder()
		m.handler.ServeHTTP(w, server)
		done <- w.Result()
	}()
	select {
	case response := <-done:
		if response == nil {
			return nil, errors.New("the connection was closed")
		}
		return response, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// Callback is one received callback.
type Callback struct {
	Method, Path, Body string
	Header             http.Header
}

// Callbacks is a handler that keeps callbacks. Status is its response; 0 means 200.
type Callbacks struct {
	Status int

	mu       sync.Mutex
	received []Callback
}

// Respond sets the response to the callbacks from now on.
func (c *Callbacks) Respond(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Status = status
}

// ServeHTTP implements http.Handler.
func (c *Callbacks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, Callback{r.Method, r.URL.Path, string(body), r.Header})
	if c.Status != 0 {
		w.WriteHeader(c.Status)
	}
}

// All returns the callbacks so far.
func (c *Callbacks) All() []Callback {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Callback(nil), c.received...)
}

// Caller calls a handler in a test.
type Caller struct {
	*testing.T
	http.Handler
}

// To returns the caller of a handler.
func To(t *testing.T, h http.Handler) Caller { return Caller{t, h} }

// Do sends a request and returns the status, or 0 for a closed connection, and the body. Headers are pairs.
func (c Caller) Do(method, path, body string, headers ...string) (int, string) {
	c.Helper()
	r, err := http.NewRequestWithContext(c.Context(), method, "http://stub.test"+path, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := Client(c.Handler).Do(r)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.Fatal(err)
	}
	return response.StatusCode, string(text)
}
