package relay_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/deliverytest"
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
	waitUntil(t, e.ID+" is delivered", func() bool { return len(s.MustGet(t, e).Outbox.Delivered) > 0 })
}

// waitUntil waits until a condition is true.
func waitUntil(t *testing.T, what string, condition func() bool) {
	t.Helper()
	const longest = time.Minute // only a failing test waits so long, also on a busy machine
	deadline := time.NewTimer(longest)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("after %s it is not true that %s", longest, what)
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
	// Each batch gets as far as it can before the next one, on any number of processors: a record hangs at the server,
	// or has its line in the log.
	relayHanging := func(from, to int) {
		for ; from < to; from += 20 {
			ended := func() int { return len(s.MerchantServer.Received("/hang")) + s.LogLines.LineCount() }
			before := ended()
			s.relayEntries(t, hanging[from:from+20]...)
			waitUntil(t, "20 records hang or are left to the sweep", func() bool { return ended() == before+20 })
		}
	}
	relayHanging(0, 60)
	quick := s.StoreFinalPayment("DemoShop_1000", ledger.Failed) // its slot is free again
	s.relayEntries(t, quick)
	waitUntil(t, "the quick record has ended", func() bool { return s.LogLines.LineCount() == 1 })
	s.waitUntilDelivered(t, quick)
	relayHanging(60, len(hanging))
	other := s.StoreFinalPayment("OtherShop_1", ledger.Failed, func(e *ledger.Entry) { e.Merchant.ID = "othr0002" })
	s.relayEntries(t, other)
	defer close(release)
	s.waitUntilDelivered(t, other)
	waitUntil(t, "100 records hang and 140 are left to the sweep", func() bool {
		return s.LogLines.LineCount() == 140+2 && len(s.MerchantServer.Received("/hang")) == 100
	})
}

// An attempt leaves time to store its result (decision "notifications").
func TestStoreMargin(t *testing.T) {
	s := newFixture(t)
	over := make(chan struct{})
	s.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) { <-over })
	t.Cleanup(func() { close(over) })
	e := s.StoreFinalPayment("DemoShop_1", ledger.Failed)
	// This deadline is a real one, unlike the fixture's: 1 s for the attempt and 4 s for the rest.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	began := time.Now()
	if _, err := s.relay.Invoke(ctx, deliverytest.StreamEvent(t, e)); err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	if head := s.MustHead(t, e); head.Attempts != 1 || head.LastReason != webhook.ReasonTimeout {
		t.Errorf("notification %+v, want one attempt that timed out", head)
	}
	if elapsed := time.Since(began); elapsed > 4*time.Second {
		t.Errorf("the invocation lasted %s", elapsed)
	}
}

// A batch that is not taken up leaves one line for each record.
func TestBatchOverTheLimitIsLogged(t *testing.T) {
	s := newFixture(t)
	s.relay.MaxBatchWait = time.Millisecond
	release := make(chan struct{})
	s.MerchantServer.RespondFunc("/hang", func(http.ResponseWriter, *http.Request) { <-release })
	for merchant := range 2 {
		var hanging []*ledger.Entry
		for i := range 100 {
			e := s.storeFailed(fmt.Sprintf("DemoShop_%d%03d", merchant, i), "/hang")
			e.Merchant.ID = fmt.Sprint("demo000", merchant)
			hanging = append(hanging, s.StoreEntry(e))
		}
		s.relayEntries(t, hanging...)
	}
	defer close(release)
	before := s.LogLines.LineCount()
	s.relayEntries(t, s.storeFailed("DemoShop_1", "/demo"), s.storeFailed("DemoShop_2", "/demo"))
	if lines := s.LogLines.LineCount() - before; lines != 2 {
		t.Errorf("%d lines for a batch of 2 that is left to the sweep", lines)
	}
	if !strings.Contains(s.LogLines.String(), `"TransactionKey":"DemoShop_2","Operator":"sandbox"`) {
		t.Errorf("the lines do not name the entries: %s", s.LogLines)
	}
}

// A relay that freezes before its post is written does not finish it after the fast lease. By then the sweep may have
// delivered the next status (decision "notification-order").
func TestFrozenBeforePost(t *testing.T) {
	for name, c := range map[string]struct {
		freeze time.Duration
		posts  int
	}{
		"in time":                  {ledger.FastLease - 10*time.Second, 1},
		"5 seconds before its end": {ledger.FastLease - 5*time.Second, 0},
		"two minutes":              {2 * time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			e := s.StoreFinalPayment("DemoShop_1", ledger.Successful)
			s.Courier.Health = frozenHealth{s.HealthStore, func() { s.Clock.Advance(c.freeze) }}
			s.relayEntries(t, e)
			s.AssertReceived(t, c.posts)
			if attempts := len(s.MustGet(t, e).Outbox.FailedAttempts); attempts != 0 {
				t.Errorf("%d failed attempts are counted, want none", attempts)
			}
		})
	}
}

// The relay sends the payer's SMS only while at least 5 seconds of its lease are left: the sweep claims it after that.
func TestUserSMSLease(t *testing.T) {
	for left, want := range map[time.Duration]int{5 * time.Second: 1, 5*time.Second - time.Millisecond: 0} {
		s := newFixture(t)
		e := s.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) {
			e.UserSMS.At = ledger.Timestamp(s.Clock.Now()).Add(left)
		})
		s.relayEntries(t, e)
		s.AssertUserSMSCalls(t, want)
	}
}

// frozenHealth freezes the function while it reads health.
type frozenHealth struct {
	webhook.HealthStore
	freeze func()
}

func (f frozenHealth) Health(ctx context.Context, endpoint webhook.Endpoint) (webhook.Health, error) {
	f.freeze()
	return f.HealthStore.Health(ctx, endpoint)
}

// decision "notification-order": a repeated record of an earlier status posts nothing, also after the later status.
func TestRepeatedRecordOfEarlierStatus(t *testing.T) {
	s := newFixture(t)
	first := s.StoreMessage("sms-1", ledger.DeliveredToNetwork)
	s.relayEntries(t, first)
	second, err := s.Book.Change(t.Context(), first.Key, func(e *ledger.Entry) (ledger.Transition, error) {
		return ledger.AddReceipt.After(e.ApplyReceipt(ledger.DeliveredToTerminal, ledger.Timestamp(s.Clock.Now()))), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.relayEntries(t, second)
	s.relayEntries(t, first)
	var statuses []string
	for _, received := range s.MerchantServer.Received("") {
		statuses = append(statuses, received.Body)
	}
	if len(statuses) != 2 || !strings.Contains(statuses[0], "DeliveredToNetwork") {
		t.Errorf("posted %q, want DeliveredToNetwork and DeliveredToTerminal once each", statuses)
	}
}
