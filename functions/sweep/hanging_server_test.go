package sweep_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// Workers make no outside calls: more servers may hang than there are workers.
func TestHangingServersOfManyMerchants(t *testing.T) {
	s := newFixture(t)
	release := make(chan struct{})
	s.MerchantServer.RespondFunc("/hang", func(http.ResponseWriter, *http.Request) { <-release })
	for i := range 64 {
		s.StoreDueNotification(fmt.Sprint("DemoShop_", i), func(e *ledger.Entry) {
			e.Merchant.ID, e.Outbox.URL = fmt.Sprint("hang00", i), s.MerchantServer.URL+"/hang"
			e.CreatedAt = e.CreatedAt.Add(-time.Hour)
		})
	}
	s.Clock.Advance(time.Second)
	other := s.StoreDueNotification("OtherShop_1000", func(e *ledger.Entry) { e.Merchant.ID = "othr0002" })
	s.runWhileHanging(t, other, release)
}

// A merchant whose orders each have another hanging server does not delay other merchants: after some slow attempts,
// few attempts of this merchant run concurrently.
func TestHangingServersOfOneMerchant(t *testing.T) {
	s := newFixture(t)
	const first, more = 16, 64
	var entered sync.WaitGroup
	entered.Add(first)
	var count atomic.Int64
	var once sync.Once
	release := make(chan struct{})
	hang := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if count.Add(1) > first {
			<-release
			return
		}
		entered.Done()
		entered.Wait()
		once.Do(func() { s.Clock.Advance(4 * time.Second) }) // the duration of each attempt so far
		w.WriteHeader(http.StatusInternalServerError)
	})
	var backlog []*ledger.Entry
	for i := range first + more {
		server := httptest.NewServer(hang)
		t.Cleanup(server.Close)
		backlog = append(backlog, s.StoreDueNotification(fmt.Sprint("DemoShop_", i), func(e *ledger.Entry) {
			e.Outbox.URL = server.URL
			e.CreatedAt = e.CreatedAt.Add(-time.Hour)
		}))
	}
	s.Clock.Advance(time.Second)
	other := s.StoreDueNotification("OtherShop_1000", func(e *ledger.Entry) { e.Merchant.ID = "othr0002" })
	s.runWhileHanging(t, other, release)
	for range 10 {
		s.runSweepAfter(t, 6*time.Minute)
	}
	s.AssertDelivered(t, backlog...)
}
