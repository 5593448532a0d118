package main

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

func delayCalls(delay time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(delay)
		next.ServeHTTP(w, r)
	})
}

// meter passes requests on. It counts the calls by operation and adds up the time until they have their response. A GET
// without a path is not a call: a function opens its connections with it. meter is safe for concurrent use.
type meter struct {
	next http.Handler

	mu     sync.Mutex
	calls  map[string]int
	waited time.Duration
}

// ServeHTTP implements http.Handler.
func (m *meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	m.next.ServeHTTP(w, r)
	if r.Method == http.MethodGet && r.URL.Path == "/" {
		return
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[operation]++
	m.waited += time.Since(started)
}

// circuitReads passes reads of circuits to a meter of their own, because a process makes them by time and not by
// request (decision "circuit-breaker"). All other calls go to others.
type circuitReads struct {
	*meter
	others http.Handler
}

// ServeHTTP implements http.Handler.
func (c circuitReads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetItem") && bytes.Contains(body, []byte(`"circuit#`)) {
		c.meter.ServeHTTP(w, r)
		return
	}
	c.others.ServeHTTP(w, r)
}

// drain returns the calls since the last drain, by operation ("" without X-Amz-Target), and how long they took.
func (m *meter) drain() (calls map[string]int, waited time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls, waited = m.calls, m.waited
	m.calls, m.waited = map[string]int{}, 0
	return calls, waited
}
