package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"
)

// proxy stands in front of what the functions call, and can hold a request at a point: before it is passed on, or after
// its answer is there. Whoever sent it is then killed, and never hears the answer.
type proxy struct {
	*httptest.Server

	mu       sync.Mutex
	upstream *httputil.ReverseProxy
	ready    chan struct{} // closed when it is known where to pass on
	traps    []*interception
}

// interception waits for one request. held is closed when it is there.
type interception struct {
	matches          func(header http.Header, body []byte) bool
	beforeForwarding bool
	caught           chan struct{}
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{ready: make(chan struct{})}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// forwardTo says where requests go; until then they wait.
func (p *proxy) forwardTo(t *testing.T, address string) {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p.upstream = &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	close(p.ready)
}

// intercept lays a trap for the first request that fits.
func (p *proxy) intercept(before bool, matches func(http.Header, []byte) bool) *interception {
	candidate := &interception{matches: matches, beforeForwarding: before, caught: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = append(p.traps, candidate)
	return candidate
}

// takeInterception takes the trap that a request falls into; nil for none.
func (p *proxy) takeInterception(r *http.Request, body []byte) *interception {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, candidate := range p.traps {
		if candidate.matches(r.Header, body) {
			p.traps = append(p.traps[:i:i], p.traps[i+1:]...)
			return candidate
		}
	}
	return nil
}

// ServeHTTP passes a request on, or holds it until its sender is gone.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-p.ready:
	case <-r.Context().Done():
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	candidate := p.takeInterception(r, body)
	if candidate == nil {
		p.upstream.ServeHTTP(w, r)
		return
	}
	if !candidate.beforeForwarding {
		p.upstream.ServeHTTP(httptest.NewRecorder(), r)
	}
	close(candidate.caught)
	select {
	case <-r.Context().Done():
	case <-time.After(time.Minute):
	}
	panic(http.ErrAbortHandler) // no answer, whoever still waits for one
}
