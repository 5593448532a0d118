//go:build linux

package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// TestLoadBalancer checks that each request is forwarded and that no container has two requests at once.
func TestLoadBalancer(t *testing.T) {
	var targets []*url.URL
	var responded atomic.Int64
	for range containersPerFunction {
		var busy atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if busy.Add(1) > 1 {
				t.Error("a container has two requests at once")
			}
			responded.Add(1)
			busy.Add(-1)
		}))
		t.Cleanup(server.Close)
		target, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, target)
	}
	balancer := newLoadBalancer(targets)
	const requests = 200
	var group sync.WaitGroup
	for range requests {
		group.Go(func() {
			balancer.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/mobilemoney/v1", nil))
		})
	}
	group.Wait()
	if responded.Load() != requests {
		t.Errorf("%d of %d requests were forwarded", responded.Load(), requests)
	}
}
