// Package operatortest is the conformance suite of operator drivers. Every driver must report only certain outcomes,
// and must not repeat a call unless repeats are declared safe.
//
// A driver runs against a stub over real HTTP, which returns a valid, invalid, truncated or no response. The suite does
// not depend on a protocol: the driver's own test supplies the platform's responses. The same value is the bench of
// that test: it makes the driver with its account, and checks what each response proves. It is used only by tests.
package operatortest

import (
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// maxRecordedBytes bounds the body of a request that is recorded, in bytes.
const maxRecordedBytes = 1 << 20

// Request is a request as the stub received it.
type Request struct {
	Method string
	// Path is the request target exactly as sent, with its escapes.
	Path   string
	Header http.Header
	Body   string
}

// Responder responds to one request, whose body has been read.
type Responder func(w http.ResponseWriter, r *http.Request)

// StubOperator is a scripted operator platform.
type StubOperator struct {
	*httptest.Server // URL is the base address

	closed chan struct{}

	// preparatory responds to requests that move no money; nil for any other. They are not among Requests.
	preparatory func(r *http.Request) Responder

	mu         sync.Mutex
	responders []Responder
	requests   []Request
	status     int // of the last response to them, 0 for none
}

// NewStubOperator starts a stub that ends with the test. The responders are those of SetResponses.
func NewStubOperator(t *testing.T, responders ...Responder) *StubOperator {
	t.Helper()
	p := &StubOperator{closed: make(chan struct{}), responders: responders}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(func() {
		close(p.closed)
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// Prepare sets what responds to requests that move no money, as Suite.Preparatory.
func (p *StubOperator) Prepare(respond func(*http.Request) Responder) { p.preparatory = respond }

// SetResponses sets the responses to the next requests. The last one repeats.
func (p *StubOperator) SetResponses(responders ...Responder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.responders = responders
}

// Requests returns the received requests, oldest first.
func (p *StubOperator) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// ClearRequests empties the list of requests.
func (p *StubOperator) ClearRequests() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = nil
}

func (p *StubOperator) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRecordedBytes))
	if err != nil {
		return // the driver closed the connection
	}
	if p.preparatory != nil {
		if respond := p.preparatory(r); respond != nil {
			respond(w, r)
			return
		}
	}
	respond := Respond(http.StatusNotImplemented, "the stub has no responses: call SetResponses")
	p.mu.Lock()
	p.requests = append(p.requests, Request{r.Method, r.RequestURI, r.Header.Clone(), string(body)})
	if len(p.responders) > 0 {
		respond = p.responders[0]
	}
	if len(p.responders) > 1 {
		p.responders = p.responders[1:]
	}
	p.mu.Unlock()
	respond(statusRecorder{w, p}, r)
}

// statusRecorder keeps the status of a response.
type statusRecorder struct {
	http.ResponseWriter
	stub *StubOperator
}

// WriteHeader implements http.ResponseWriter.
func (r statusRecorder) WriteHeader(status int) {
	r.stub.mu.Lock()
	r.stub.status = status
	r.stub.mu.Unlock()
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (r statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// lastStatus is the status of the last response to Requests, 0 for none.
func (p *StubOperator) lastStatus() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// Respond returns a response with a status, header pairs and a body.
func Respond(status int, body string, header ...string) Responder {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) //nolint:gosec // no browser reads it; the driver may have closed the connection
	}
}

// Tokens responds to exchanges of tokens at a path, as Suite.Preparatory. Other credentials get another token.
func Tokens(path string) func(*http.Request) Responder {
	return func(r *http.Request) Responder {
		if r.URL.Path != path {
			return nil
		}
		sum := crc32.ChecksumIEEE([]byte(r.Header.Get("Authorization")))
		return Respond(http.StatusOK, fmt.Sprintf(`{"access_token":"token-very-private-%x","expires_in":"3600"}`, sum))
	}
}

// NeverRespond keeps the request open without a response.
func (p *StubOperator) NeverRespond() Responder {
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-p.closed:
		}
	}
}

// CloseConnection closes the connection before the first byte of a response.
func CloseConnection() Responder {
	return RespondRaw("")
}

// RespondRaw sends these bytes in place of HTTP, and closes the connection.
func RespondRaw(text string) Responder {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return // the server is closing
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}
}

// RespondTruncated sends the head of a response and half of its body, and closes the connection.
func RespondTruncated(status int, body string) Responder {
	const head = "HTTP/1.1 %d Half\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
	return RespondRaw(fmt.Sprintf(head, status, len(body)) + body[:len(body)/2])
}

// RespondOversized returns a body of valid JSON with more than size bytes.
func RespondOversized(status, size int) Responder {
	return Respond(status, `{"padding":"`+strings.Repeat("x", size)+`"}`)
}
