package relay_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"mobilegateway/internal/deliverytest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
)

// A slow server delays the next batch by at most MaxBatchWait. Its notification is delivered during the next batches,
// after its own invocation has ended.
func TestBatchWait(t *testing.T) {
	s := newFixture(t)
	s.relay.MaxBatchWait = 20 * time.Millisecond
	arrived, release := make(chan struct{}), make(chan struct{})
	s.MerchantServer.RespondFunc("/slow", func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	})
	slow, quick := s.storeFailed("DemoShop_1", "/slow"), s.storeFailed("DemoShop_2", "/demo")
	ctx, endInvocation := context.WithTimeout(t.Context(), timeout)
	if _, err := s.relay.Invoke(ctx, deliverytest.StreamEvent(t, slow)); err != nil {
		t.Fatal(err)
	}
	endInvocation() // as the runtime does after a response
	<-arrived
	s.relayEntries(t, quick)
	s.waitUntilDelivered(t, quick)
	s.AssertEntry(t, slow, failureQueued)
	close(release)
	s.waitUntilDelivered(t, slow)
	if posts := len(s.MerchantServer.Received("/slow")); posts != 1 {
		t.Errorf("%d posts to the slow server, want 1", posts)
	}
}

// waitUntilDelivered waits until an entry has a delivered notification.
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
			t.Fatalf("%s is not delivered", e.ID)
		}
	}
}

// A merchant whose servers hang does not use the slots of other merchants: its further records are left to the sweep.
func TestInFlightLimitPerMerchant(t *testing.T) {
	s := newFixture(t)
	s.relay.MaxBatchWait = time.Millisecond
	release := make(chan struct{})
	s.MerchantServer.RespondFunc("/hang", func(http.ResponseWriter, *http.Request) { <-release })
	var hanging []*ledger.Entry
	for i := range 240 {
		hanging = append(hanging, s.storeFailed(fmt.Sprint("DemoShop_", i), "/hang"))
	}
	for i := 0; i < len(hanging); i += 20 {
		s.relayEntries(t, hanging[i:i+20]...)
	}
	other := s.StoreFinalPayment("OtherShop_1", ledger.Failed, func(e *ledger.Entry) { e.MerchantID = "othr0002" })
	s.relayEntries(t, other)
	defer close(release)
	s.waitUntilDelivered(t, other)
}

// An attempt leaves time to store its result (decision "notifications").
func TestStoreMargin(t *testing.T) {
	s := newFixture(t)
	over := make(chan struct{})
	s.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) { <-over })
	t.Cleanup(func() { close(over) })
	e := s.StoreFinalPayment("DemoShop_1", ledger.Failed)
	// This deadline is a real one, unlike the fixture's: 0.3 s for the attempt and 4 s for the rest.
	ctx, cancel := context.WithTimeout(context.Background(), 4300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := s.relay.Invoke(ctx, deliverytest.StreamEvent(t, e)); err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	if head := s.MustHead(t, e); head.Attempts != 1 || head.LastReason != webhook.ReasonTimeout {
		t.Errorf("notification %+v, want one attempt that timed out", head)
	}
	if elapsed := time.Since(began); elapsed > 3*time.Second {
		t.Errorf("the invocation lasted %s", elapsed)
	}
}
