package main

import (
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

// drain returns the calls since the last drain, by operation ("" without X-Amz-Target), and how long they took.
func (m *meter) drain() (calls map[string]int, waited time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls, waited = m.calls, m.waited
	m.calls, m.waited = map[string]int{}, 0
	return calls, waited
}
