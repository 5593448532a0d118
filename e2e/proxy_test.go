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

	mu    sync.Mutex
	to    *httputil.ReverseProxy
	ready chan struct{} // closed when it is known where to pass on
	traps []*trap
}

// trap waits for one request. held is closed when it is there.
type trap struct {
	fits   func(header http.Header, body []byte) bool
	before bool
	held   chan struct{}
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{ready: make(chan struct{})}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// forward says where requests go; until then they wait.
func (p *proxy) forward(t *testing.T, address string) {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p.to = &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	close(p.ready)
}

// set lays a trap for the first request that fits.
func (p *proxy) set(before bool, fits func(http.Header, []byte) bool) *trap {
	laid := &trap{fits: fits, before: before, held: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = append(p.traps, laid)
	return laid
}

// caught takes the trap that a request falls into; nil for none.
func (p *proxy) caught(r *http.Request, body []byte) *trap {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, laid := range p.traps {
		if laid.fits(r.Header, body) {
			p.traps = append(p.traps[:i:i], p.traps[i+1:]...)
			return laid
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
	laid := p.caught(r, body)
	if laid == nil {
		p.to.ServeHTTP(w, r)
		return
	}
	if !laid.before {
		p.to.ServeHTTP(httptest.NewRecorder(), r)
	}
	close(laid.held)
	select {
	case <-r.Context().Done():
	case <-time.After(time.Minute):
	}
	panic(http.ErrAbortHandler) // no answer, whoever still waits for one
}
