package relay_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"mobilegateway/internal/deliverytest"
	"mobilegateway/shared/ledger"
)

// A slow server holds the next batch up for no longer than the relay's patience, and is told all the same: its post goes
// on beside the next batches, also after its own invocation has answered.
func TestPatience(t *testing.T) {
	s := kit(t)
	s.relay.Patience = 20 * time.Millisecond
	arrived, release := make(chan struct{}), make(chan struct{})
	s.Shop.Handle("/slow", func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	})
	slow := s.Final("DemoShop_1", ledger.Failed, to(s, "/slow"))
	quick := s.Final("DemoShop_2", ledger.Failed)
	ctx, answered := context.WithTimeout(t.Context(), timeout)
	if _, err := s.relay.Invoke(ctx, deliverytest.Stream(t, slow)); err != nil {
		t.Fatal(err)
	}
	answered() // as the runtime does after an answer
	<-arrived
	s.run(t, quick)
	s.until(t, quick)
	if len(s.Get(t, slow).Told) != 0 {
		t.Error("told before its server answered")
	}
	close(release)
	s.until(t, slow)
	if posts := len(s.Shop.Posts("/slow")); posts != 1 {
		t.Errorf("%d posts", posts)
	}
}

// until waits for an entry to be told.
func (s *service) until(t *testing.T, e *ledger.Entry) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(s.Get(t, e).Told) == 0 {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s is not told", e.ID)
		}
	}
}
