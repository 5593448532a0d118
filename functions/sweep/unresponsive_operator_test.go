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

// An operator that is down does not take every place of a sweep: once it was not heard, few ask it side by side. Here
// those few hang until another merchant has been told, which they would prevent if they were all.
func TestUnresponsiveOperatorIsBounded(t *testing.T) {
	const unanswered = 100 // the first lookups fail at once, those after them hang
	s := newFixture(t)
	var calls atomic.Int64
	var once sync.Once
	delivered := make(chan struct{})
	s.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) { once.Do(func() { close(delivered) }) })
	s.Operator.SetLookupFunc(func(operator.StatusCall) operator.StatusResponse {
		if calls.Add(1) > unanswered {
			<-delivered
		}
		return operator.StatusResponse{Cause: errors.New("no answer")}
	})
	for i := range 320 {
		s.StorePendingPayment(fmt.Sprint("DemoShop_", i), func(e *ledger.Entry) { e.PollAt = e.CreatedAt })
	}
	other := s.StoreDueNotification("DemoShop_1000", func(e *ledger.Entry) { e.Outbox[0].NextAttemptAt = e.CreatedAt.Add(30 * time.Second) })
	s.Clock.Advance(time.Minute)
	s.runSweep(t)
	if len(s.MustGet(t, other).Delivered) != 1 {
		t.Error("another merchant is not told")
	}
	if failures := s.LogLines.SumMetric("LookupFailures"); failures != int(calls.Load()) {
		t.Errorf("%d failures of %d lookups are counted", failures, calls.Load())
	}
}
