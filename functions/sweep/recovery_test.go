package sweep_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
)

// recoveryBound is how late what was postponed during an outage is after its end: two postponements and a sweep
// (decision "notifications").
const recoveryBound = 11 * time.Minute

// decision "notifications": after an outage the first delivery opens the fast path. A notification that was postponed,
// because the server failed, arrives within the bound. One that was attempted goes at the time of its next attempt, or
// when a person sends it.
func TestRecoveryAfterAnOutage(t *testing.T) {
	s := newFixture(t)
	s.MerchantServer.RespondWith("/demo", 503)
	s.HealthStore.StoreHealth(webhook.Health{Endpoint: endpoint(s), Failures: 9, Slow: true})
	var due []*ledger.Entry
	for i := range 60 {
		due = append(due, s.StoreDueNotification(fmt.Sprintf("DemoShop_%d", i)))
	}
	hour := s.Clock.Now().Add(time.Hour)
	waits := s.StoreDueNotification("DemoShop_1000")
	s.StoreEntry(waits, func(e *ledger.Entry) { e.Outbox.Head().Attempts, e.Outbox.Head().NextAttemptAt = 4, hour })
	s.Clock.Advance(20 * time.Minute) // postponements have their longest wait
	for range 3 {
		s.runSweepAfter(t, time.Minute)
	}
	s.MerchantServer.RespondFunc("/demo", nil)
	recoveredAt := s.Clock.Now()
	due = slices.DeleteFunc(due, func(e *ledger.Entry) bool { return s.MustHead(t, e).Attempts > 0 })
	if len(due) < 10 {
		t.Fatalf("%d of 60 were postponed, want the most", len(due))
	}
	var opened time.Duration
	for len(s.undelivered(t, due)) > 0 {
		s.runSweepAfter(t, time.Minute)
		late, waiting := s.Clock.Now().Sub(recoveredAt), len(s.undelivered(t, due))
		open := s.HealthStore.Stored(endpoint(s)).AllowsFastPath()
		if open && opened == 0 {
			opened = late
		}
		if open != (waiting < len(due)) {
			t.Errorf("after %s %d of %d wait, and the fast path is open: %v", late, waiting, len(due), open)
		}
		if late > recoveryBound {
			t.Fatalf("after %s %d of %d wait", late, waiting, len(due))
		}
	}
	t.Logf("the fast path opened after %s, the last was delivered after %s", opened, s.Clock.Now().Sub(recoveredAt))
	if len(s.MustGet(t, waits).Outbox.Delivered) != 0 {
		t.Error("one that waits for its next attempt was sent before its time")
	}
	now := ledger.Timestamp(s.Clock.Now())
	s.StoreEntry(s.MustGet(t, waits), func(e *ledger.Entry) { e.Outbox.SendNow(now) })
	s.advanceUntilDue(t, waits)
	s.AssertDelivered(t, waits)
	if wait := s.Clock.Now().Sub(now); wait > ledger.FastLease {
		t.Errorf("sent after %s, want the fast lease at most", wait)
	}
}

// undelivered returns the entries that have no delivered notification.
func (s *sweepFixture) undelivered(t *testing.T, entries []*ledger.Entry) []*ledger.Entry {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(entries), func(e *ledger.Entry) bool {
		return len(s.MustGet(t, e).Outbox.Delivered) > 0
	})
}
