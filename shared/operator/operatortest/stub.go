// Package operatortest is the conformance suite of operator drivers: whatever platform a driver speaks to, the outcomes
// it reports must be certain, and nothing is sent twice that was not declared safe.
//
// A driver is run against a scripted peer over real HTTP, which answers as the test says: well, badly, half or not at
// all. The suite knows no dialect: the driver's own test gives it the platform's answers. It is used by tests alone.
package operatortest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// maxRecordedBytes bounds the body of a request that is recorded, in bytes.
const maxRecordedBytes = 1 << 20

// Request is a request as the peer saw it.
type Request struct {
	Method string
	// Path is the request target exactly as it was sent, escapes untouched.
	Path   string
	Header http.Header
	Body   string
}

// Responder answers one request. The request's body has been read.
type Responder func(w http.ResponseWriter, r *http.Request)

// StubOperator is a scripted operator platform.
type StubOperator struct {
	// URL is the peer's base address.
	URL string

	server *httptest.Server
	closed chan struct{}

	mu         sync.Mutex
	responders []Responder
	requests   []Request
}

// NewStubOperator starts a peer that ends with the test.
func NewStubOperator(t *testing.T) *StubOperator {
	t.Helper()
	p := &StubOperator{closed: make(chan struct{})}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.server.Start()
	p.URL = p.server.URL
	t.Cleanup(func() {
		close(p.closed)
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// SetResponses sets what the next requests are answered, one step each; the last step answers all that follow.
func (p *StubOperator) SetResponses(responders ...Responder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.responders = responders
}

// Requests returns what came so far, oldest first.
func (p *StubOperator) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Request(nil), p.requests...)
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
		return // the driver gave up while it was writing
	}
	responder := p.recordAndNext(Request{Method: r.Method, Path: r.RequestURI, Header: r.Header.Clone(), Body: string(body)})
	if responder == nil {
		http.Error(w, "the script is empty", http.StatusNotImplemented)
		return
	}
	responder(w, r)
}

// recordAndNext records a request and takes its step.
func (p *StubOperator) recordAndNext(request Request) Responder {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, request)
	if len(p.responders) == 0 {
		return nil
	}
	responder := p.responders[0]
	if len(p.responders) > 1 {
		p.responders = p.responders[1:]
	}
	return responder
}

// Respond answers with a status, header pairs and a body.
func Respond(status int, body string, header ...string) Responder {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the driver may be gone: then there is nobody to tell
	}
}

// NeverRespond never answers.
func (p *StubOperator) NeverRespond() Responder {
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-p.closed:
		}
	}
}

// CloseConnection closes the connection before a byte of an answer.
func CloseConnection() Responder {
	return func(w http.ResponseWriter, _ *http.Request) {
		if conn := hijack(w); conn != nil {
			_ = conn.Close()
		}
	}
}

// RespondRaw answers with these bytes in place of HTTP, and closes.
func RespondRaw(text string) Responder {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn := hijack(w)
		if conn == nil {
			return
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}
}

// RespondTruncated sends the head of an answer and half of its body, and closes.
func RespondTruncated(status int, body string) Responder {
	head := fmt.Sprintf("HTTP/1.1 %d Half\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", status, len(body))
	return RespondRaw(head + body[:len(body)/2])
}

// RespondOversized answers with a body of more than size bytes that is JSON to its end.
func RespondOversized(status, size int) Responder {
	return Respond(status, `{"padding":"`+strings.Repeat("x", size)+`"}`)
}

// hijack takes the connection over; nil where the server is closing.
func hijack(w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	return conn
}
