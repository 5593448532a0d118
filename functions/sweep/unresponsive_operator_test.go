package sweep_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// An operator that is down does not use all workers: after a lookup without a response, few lookups run concurrently.
// Here these hang until another merchant's notification is delivered. They would prevent that if they used all workers.
func TestUnresponsiveOperatorIsBounded(t *testing.T) {
	const failingAtOnce = 100 // the lookups after these hang
	s := newFixture(t)
	var calls atomic.Int64
	var once sync.Once
	delivered := make(chan struct{})
	s.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) {
		once.Do(func() { close(delivered) })
	})
	s.Operator.LookupFunc = func(operator.StatusCall) operator.StatusResponse {
		if calls.Add(1) > failingAtOnce {
			<-delivered
		}
		return operator.StatusResponse{Cause: errors.New("no response")}
	}
	for i := range 320 {
		s.StorePendingPayment(fmt.Sprint("DemoShop_", i), func(e *ledger.Entry) { e.Poll.At = e.CreatedAt })
	}
	other := s.StoreDueNotification("DemoShop_1000")
	s.Clock.Advance(time.Minute)
	s.runSweep(t)
	s.AssertDelivered(t, other)
	s.AssertMetric(t, "LookupFailures", int(calls.Load()))
}
