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

// maxRecorded bounds the body of a request that is recorded, in bytes.
const maxRecorded = 1 << 20

// Request is a request as the peer saw it.
type Request struct {
	Method string
	// Path is the request target exactly as it was sent, escapes untouched.
	Path   string
	Header http.Header
	Body   string
}

// Step answers one request. The request's body has been read.
type Step func(w http.ResponseWriter, r *http.Request)

// Peer is a scripted operator platform.
type Peer struct {
	// URL is the peer's base address.
	URL string

	server *httptest.Server
	end    chan struct{}

	mu       sync.Mutex
	script   []Step
	requests []Request
}

// NewPeer starts a peer that ends with the test.
func NewPeer(t *testing.T) *Peer {
	t.Helper()
	p := &Peer{end: make(chan struct{})}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.server.Start()
	p.URL = p.server.URL
	t.Cleanup(func() {
		close(p.end)
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// Script sets what the next requests are answered, one step each; the last step answers all that follow.
func (p *Peer) Script(steps ...Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = steps
}

// Requests returns what came so far, oldest first.
func (p *Peer) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Request(nil), p.requests...)
}

// Forget empties the list of requests.
func (p *Peer) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = nil
}

func (p *Peer) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRecorded))
	if err != nil {
		return // the driver gave up while it was writing
	}
	step := p.next(Request{Method: r.Method, Path: r.RequestURI, Header: r.Header.Clone(), Body: string(body)})
	if step == nil {
		http.Error(w, "the script is empty", http.StatusNotImplemented)
		return
	}
	step(w, r)
}

// next records a request and takes its step.
func (p *Peer) next(request Request) Step {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, request)
	if len(p.script) == 0 {
		return nil
	}
	step := p.script[0]
	if len(p.script) > 1 {
		p.script = p.script[1:]
	}
	return step
}

// Answer answers with a status, header pairs and a body.
func Answer(status int, body string, header ...string) Step {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the driver may be gone: then there is nobody to tell
	}
}

// Silent never answers.
func (p *Peer) Silent() Step {
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-p.end:
		}
	}
}

// Cut closes the connection before a byte of an answer.
func Cut() Step {
	return func(w http.ResponseWriter, _ *http.Request) {
		if conn := hijack(w); conn != nil {
			_ = conn.Close()
		}
	}
}

// Raw answers with these bytes in place of HTTP, and closes.
func Raw(text string) Step {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn := hijack(w)
		if conn == nil {
			return
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}
}

// Half sends the head of an answer and half of its body, and closes.
func Half(status int, body string) Step {
	head := fmt.Sprintf("HTTP/1.1 %d Half\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", status, len(body))
	return Raw(head + body[:len(body)/2])
}

// Huge answers with a body of more than size bytes that is JSON to its end.
func Huge(status, size int) Step {
	return Answer(status, `{"padding":"`+strings.Repeat("x", size)+`"}`)
}

// hijack takes the connection over; nil where the server is closing.
func hijack(w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	return conn
}
