package waf_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mobilegateway/internal/localtest"
)

const (
	floodTime          = 15 * time.Second
	floodPerSecond     = 200
	floodAddresses     = 8
	merchantsPerSecond = 10
)

// TestAnonymousFlood sends 200 anonymous requests a second from eight addresses, and a merchant's lookups of a charge
// beside them. The stage has the default throttle. The web ACL keeps the merchant's success rate at 99 %; without it
// the flood takes the merchant's share of the stage.
func TestAnonymousFlood(t *testing.T) {
	if os.Getenv("FLOOD") == "" {
		t.Skip("make flood sets FLOOD: it measures, and needs a quiet machine")
	}
	for name, withACL := range map[string]bool{"with the web ACL": true, "without it": false} {
		t.Run(name, func(t *testing.T) {
			run := localtest.Start(t, localtest.Options{
				WAF: withACL, Parameters: map[string]string{"ThrottleRate": "100", "ThrottleBurst": "200"},
			})
			info := run.Info()
			address := info.BaseURL + "/mobilemoney/v1/getStatus/" + info.Merchant + "_1"
			stop := time.Now().Add(floodTime)
			var group sync.WaitGroup
			var flooded sync.Map
			for i := range floodAddresses {
				client := clientAt(fmt.Sprintf("127.0.0.%d", i+2))
				group.Go(func() {
					sendUntil(stop, floodPerSecond/floodAddresses, func() {
						status := statusOf(client, address, "")
						count, _ := flooded.LoadOrStore(status, new(atomic.Int64))
						count.(*atomic.Int64).Add(1)
					})
				})
			}
			var sent, served atomic.Int64
			merchant := clientAt("127.0.0.1")
			sendUntil(stop, merchantsPerSecond, func() {
				sent.Add(1)
				// The order does not exist: 404 is the function's own response.
				if statusOf(merchant, address, info.AccessToken) == http.StatusNotFound {
					served.Add(1)
				}
			})
			group.Wait()
			rate := float64(served.Load()) / float64(sent.Load())
			t.Logf("the merchant got %d of %d responses: %.1f %%", served.Load(), sent.Load(), 100*rate)
			flooded.Range(func(status, count any) bool {
				t.Logf("anonymous responses with %d: %d", status, count.(*atomic.Int64).Load())
				return true
			})
			if (rate >= 0.99) != withACL {
				t.Errorf("the merchant's success rate is %.3f; the web ACL is on: %v", rate, withACL)
			}
		})
	}
}

// clientAt returns a client whose requests come from a loopback address.
func clientAt(address string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 100},
	}
}

// statusOf returns the status of a lookup, 0 for none.
func statusOf(client *http.Client, address, token string) int {
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return 0
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode
}

// sendUntil starts so many requests a second, and waits for the last one. It does not wait for one before the next.
func sendUntil(stop time.Time, perSecond int, send func()) {
	var group sync.WaitGroup
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	for now := range ticker.C {
		if now.After(stop) {
			break
		}
		group.Go(send)
	}
	group.Wait()
}
