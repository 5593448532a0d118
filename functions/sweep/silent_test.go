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
func TestASilentOperatorLeavesRoom(t *testing.T) {
	const unheard = 100 // the first lookups fail at once, those after them hang
	s := kit(t)
	var calls atomic.Int64
	var once sync.Once
	told := make(chan struct{})
	s.Shop.Handle("/demo", func(http.ResponseWriter, *http.Request) { once.Do(func() { close(told) }) })
	s.Operator.Asked(func(operator.StatusCall) operator.StatusAnswer {
		if calls.Add(1) > unheard {
			<-told
		}
		return operator.StatusAnswer{Cause: errors.New("no answer")}
	})
	for i := range 320 {
		s.Payment(fmt.Sprint("DemoShop_", i), func(e *ledger.Entry) { e.PollAt = e.CreatedAt })
	}
	other := s.Due("DemoShop_1000", func(e *ledger.Entry) { e.Outbox[0].Next = e.CreatedAt.Add(30 * time.Second) })
	s.Clock.Advance(time.Minute)
	s.run(t)
	if len(s.Get(t, other).Told) != 1 {
		t.Error("another merchant is not told")
	}
	if failures := s.Lines.Sum("LookupFailures"); failures != int(calls.Load()) {
		t.Errorf("%d failures of %d lookups are counted", failures, calls.Load())
	}
}
