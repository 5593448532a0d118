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

// The records that one merchant's servers hold up leave room for the others': past its share they are the sweep's.
func TestOneMerchantTakesNotAllOfTheRoom(t *testing.T) {
	s := kit(t)
	s.relay.Patience = time.Millisecond
	release := make(chan struct{})
	s.Shop.Handle("/hang", func(http.ResponseWriter, *http.Request) { <-release })
	var hanging []*ledger.Entry
	for i := range 240 {
		hanging = append(hanging, s.Final(fmt.Sprint("DemoShop_", i), ledger.Failed, to(s, "/hang")))
	}
	for i := 0; i < len(hanging); i += 20 {
		s.run(t, hanging[i:i+20]...)
	}
	other := s.Final("OtherShop_1", ledger.Failed, func(e *ledger.Entry) { e.MerchantID = "othr0002" })
	s.run(t, other)
	defer close(release)
	s.until(t, other)
}
