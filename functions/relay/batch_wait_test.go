package relay_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"mobilegateway/internal/deliverytest"
	"mobilegateway/shared/ledger"
)

// A slow server holds the next batch up for no longer than the relay's patience, and is told all the same: its post goes
// on beside the next batches, also after its own invocation has answered.
func TestBatchWait(t *testing.T) {
	s := newFixture(t)
	s.relay.MaxBatchWait = 20 * time.Millisecond
	arrived, release := make(chan struct{}), make(chan struct{})
	s.MerchantServer.RespondFunc("/slow", func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	})
	slow := s.StoreFinalPayment("DemoShop_1", ledger.Failed, withNotifyPath(s, "/slow"))
	quick := s.StoreFinalPayment("DemoShop_2", ledger.Failed)
	ctx, responded := context.WithTimeout(t.Context(), timeout)
	if _, err := s.relay.Invoke(ctx, deliverytest.StreamEvent(t, slow)); err != nil {
		t.Fatal(err)
	}
	responded() // as the runtime does after an answer
	<-arrived
	s.relayEntries(t, quick)
	s.waitUntilDelivered(t, quick)
	if len(s.MustGet(t, slow).Delivered) != 0 {
		t.Error("told before its server answered")
	}
	close(release)
	s.waitUntilDelivered(t, slow)
	if posts := len(s.MerchantServer.Received("/slow")); posts != 1 {
		t.Errorf("%d posts", posts)
	}
}

// waitUntilDelivered waits for an entry to be told.
func (s *relayFixture) waitUntilDelivered(t *testing.T, e *ledger.Entry) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(s.MustGet(t, e).Delivered) == 0 {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s is not told", e.ID)
		}
	}
}

// The records that one merchant's servers hold up leave room for the others': past its share they are the sweep's.
func TestInFlightLimitPerMerchant(t *testing.T) {
	s := newFixture(t)
	s.relay.MaxBatchWait = time.Millisecond
	release := make(chan struct{})
	s.MerchantServer.RespondFunc("/hang", func(http.ResponseWriter, *http.Request) { <-release })
	var hanging []*ledger.Entry
	for i := range 240 {
		hanging = append(hanging, s.StoreFinalPayment(fmt.Sprint("DemoShop_", i), ledger.Failed, withNotifyPath(s, "/hang")))
	}
	for i := 0; i < len(hanging); i += 20 {
		s.relayEntries(t, hanging[i:i+20]...)
	}
	other := s.StoreFinalPayment("OtherShop_1", ledger.Failed, func(e *ledger.Entry) { e.MerchantID = "othr0002" })
	s.relayEntries(t, other)
	defer close(release)
	s.waitUntilDelivered(t, other)
}
