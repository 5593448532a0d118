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

// proxy forwards the calls of the functions. It can intercept a request before it is forwarded or after its response.
// The test then kills the sender, which never gets the response.
type proxy struct {
	*httptest.Server

	mu       sync.Mutex
	upstream *httputil.ReverseProxy
	ready    chan struct{} // closed when the upstream is known
	pending  []*interception
}

// interception waits for one request. caught is closed when the request arrives.
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

// forwardTo sets the upstream. Requests wait until then.
func (p *proxy) forwardTo(t *testing.T, address string) {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p.upstream = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // the signature of a call to AWS covers it
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	close(p.ready)
}

// intercept intercepts the first request that matches.
func (p *proxy) intercept(before bool, matches func(http.Header, []byte) bool) *interception {
	candidate := &interception{matches: matches, beforeForwarding: before, caught: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = append(p.pending, candidate)
	return candidate
}

// takeInterception returns and removes the interception of a request, nil if there is none.
func (p *proxy) takeInterception(r *http.Request, body []byte) *interception {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, candidate := range p.pending {
		if candidate.matches(r.Header, body) {
			p.pending = append(p.pending[:i:i], p.pending[i+1:]...)
			return candidate
		}
	}
	return nil
}

// ServeHTTP forwards a request, or blocks an intercepted one until its sender is killed.
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
	panic(http.ErrAbortHandler) // a sender that still waits gets no response
}
