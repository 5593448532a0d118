package sweep_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/webhook"
)

func endpoint(s *sweepFixture) webhook.Endpoint {
	return webhook.Endpoint{MerchantID: "demo0001", URL: s.MerchantServer.URL + "/demo"}
}

// nextAttempt returns the time until the next attempt at the first notification of an entry.
func (s *sweepFixture) nextAttempt(t *testing.T, e *ledger.Entry) time.Duration {
	t.Helper()
	return s.MustHead(t, e).NextAttemptAt.Sub(s.Clock.Now())
}

// receivedIDs returns the ids of the received notifications in order.
func (s *sweepFixture) receivedIDs() []string {
	var ids []string
	for _, post := range s.MerchantServer.Received("") {
		ids = append(ids, post.ID())
	}
	return ids
}

// The whole schedule, from the first attempt to the dead letter and its replay (decision "notifications").
func TestSchedule(t *testing.T) {
	s := newFixture(t)
	s.MerchantServer.RespondWith("/demo", 500)
	e := s.StoreDueNotification("DemoShop_1")
	s.runSweep(t)
	schedule := webhook.DefaultSchedule()
	for attempts := 1; attempts < len(schedule); attempts++ {
		head := s.MustHead(t, e)
		if head.Attempts != attempts || head.LastStatus != 500 || head.DeadReason != "" {
			t.Fatalf("after %d attempts: %+v", attempts, head)
		}
		wait := s.nextAttempt(t, e)
		if base := schedule[attempts]; wait < base*4/5 || wait > base*6/5 {
			t.Errorf("attempt %d after %s, want %s ±20 %%", attempts+1, wait, base)
		}
		s.runSweepAfter(t, wait-time.Millisecond)
		s.AssertReceived(t, attempts)
		s.runSweepAfter(t, time.Millisecond)
	}
	dead := s.AssertEntry(t, e, summary{State: ledger.Done, Status: ledger.Failed, Outbox: 1})
	if head := dead.Outbox.Waiting[0]; head.DeadReason != webhook.ReasonServer || head.Attempts != len(schedule) {
		t.Fatalf("after all attempts: %+v, want a dead letter", head)
	}
	s.AssertMetric(t, "DeadLetters", 1)
	s.AssertMetric(t, "DeliveryAttemptFailures", len(schedule))
	if age := s.Clock.Now().Sub(e.CreatedAt); age < 60*time.Hour || age > 92*time.Hour {
		t.Errorf("dead letter after %s, want 60h to 92h", age)
	}
	s.runSweepAfter(t, 1000*time.Hour)
	s.AssertReceived(t, len(schedule))

	s.MerchantServer.RespondFunc("/demo", nil)
	dead.Outbox.ReplayNotification(dead.Outbox.Waiting[0].ID, ledger.Timestamp(s.Clock.Now()))
	s.StoreEntry(dead)
	s.advanceUntilDue(t, e)
	s.AssertEntry(t, e, deliveredFailure)
	if ids := slices.Compact(s.receivedIDs()); len(ids) != 1 || ids[0] != ledger.NotificationID(e.Key, ledger.Failed) {
		t.Errorf("webhook-ids %q, want the same one for each attempt", ids)
	}
}

// A 410 disables the endpoint and parks its notifications. After the endpoint is enabled all are delivered in order.
func TestDisabledEndpoint(t *testing.T) {
	s := newFixture(t)
	s.MerchantServer.RespondWith("/demo", 410)
	statuses := []ledger.Status{ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal}
	message := s.StoreMessage("m-1", statuses...)
	s.advanceUntilDue(t, message)
	later := s.StoreDueNotification("DemoShop_2")
	s.runSweep(t)
	if health := s.HealthStore.Stored(endpoint(s)); health.Enabled() || health.LastStatus != 410 {
		t.Errorf("health %+v, want the endpoint disabled by a 410", health)
	}
	for _, e := range []*ledger.Entry{message, later} {
		if after := s.MustGet(t, e); !after.Outbox.Head().Parked || after.DueAt.Sub(s.Clock.Now()) > time.Minute {
			t.Errorf("%s: %+v, due at %s, want it parked, and its endpoint read in a minute", e.Key,
				after.Outbox.Head(), after.DueAt)
		}
	}
	s.runSweepAfter(t, 500*time.Hour)
	s.AssertReceived(t, 1)
	s.AssertMetric(t, "DeadLetters", 0)

	s.MerchantServer.RespondFunc("/demo", nil)
	s.HealthStore.StoreHealth(s.HealthStore.Stored(endpoint(s)).AfterEnable(s.Clock.Now()))
	for _, e := range []*ledger.Entry{message, later} {
		s.StoreEntry(s.MustGet(t, e), func(e *ledger.Entry) { e.Outbox.Unpark(ledger.Timestamp(s.Clock.Now())) })
	}
	for range 4 {
		s.runSweepAfter(t, ledger.FastLease)
	}
	s.AssertDelivered(t, later)
	var want []string
	for _, status := range statuses {
		want = append(want, ledger.NotificationID(message.Key, status))
	}
	got := slices.DeleteFunc(s.receivedIDs()[1:], func(id string) bool { return id == later.Outbox.Head().ID })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notifications of the message after its endpoint was enabled (-want +got):\n%s", diff)
	}
}

// A new notification belongs to the relay for a minute.
func TestRelayLease(t *testing.T) {
	s := newFixture(t)
	e := s.StoreFinalPayment("DemoShop_1", ledger.Failed)
	s.runSweepAfter(t, ledger.FastLease-time.Millisecond)
	s.AssertReceived(t, 0)
	s.runSweepAfter(t, time.Millisecond)
	s.AssertReceived(t, 1)
	s.AssertDelivered(t, e)
}

// Without the endpoint's health nothing is posted and no attempt is counted.
func TestStoreFailure(t *testing.T) {
	s := newFixture(t)
	e := s.StoreDueNotification("DemoShop_1")
	s.HealthStore.Err = errors.New("down")
	s.runSweep(t)
	s.AssertReceived(t, 0)
	if attempts := s.MustHead(t, e).Attempts; attempts != 0 {
		t.Errorf("%d attempts counted, want none", attempts)
	}
	s.HealthStore.Err = nil
	assertWait(t, s.advanceUntilDue(t, e), time.Minute)
	s.AssertDelivered(t, e)
}

// The payer's SMS is claimed, sent once, and retried on its own schedule (decision "user-sms").
func TestUserSMS(t *testing.T) {
	sms := func(state ledger.UserSMSState) summary {
		return summary{State: ledger.Done, Status: ledger.Successful, UserSMS: state}
	}
	// newPayment returns a fixture with a successful payment without a notification.
	type respondFunc = func(operator.UserSMSCall) operator.Result
	newPayment := func(t *testing.T, respond respondFunc) (*sweepFixture, *ledger.Entry) {
		s := newFixture(t)
		s.Operator.UserSMSFunc = respond
		withoutNotification := func(e *ledger.Entry) { e.Outbox.URL, e.Outbox.Waiting = "", nil }
		return s, s.StoreFinalPayment("DemoShop_1", ledger.Successful, withoutNotification)
	}
	t.Run("sent once", func(t *testing.T) {
		s, e := newPayment(t, nil)
		s.advanceUntilDue(t, e)
		s.runSweepAfter(t, 100*time.Hour)
		s.AssertEntry(t, e, sms(ledger.UserSMSSent))
		s.AssertUserSMSCalls(t, 1)
	})
	t.Run("retried until the schedule ends, then counted as a failure", func(t *testing.T) {
		s, e := newPayment(t, func(operator.UserSMSCall) operator.Result { return operator.Result{} })
		var waits []time.Duration
		for !s.MustGet(t, e).DueAt.IsZero() {
			waits = append(waits, s.advanceUntilDue(t, e))
		}
		want := append([]time.Duration{ledger.FastLease}, deliverytest.PollSchedule()...)
		if diff := cmp.Diff(want, waits); diff != "" {
			t.Errorf("waits before the attempts (-want +got):\n%s", diff)
		}
		s.AssertEntry(t, e, sms(ledger.UserSMSUnknown))
		s.AssertMetric(t, "UserSMSFailures", 1)
		for _, call := range s.Operator.UserSMSCalls() {
			if call.UpstreamKey != "DemoShop_1" {
				t.Errorf("sent under the key %s, want the order_id", call.UpstreamKey)
			}
		}
	})
	t.Run("a slow SMS never delays the notification", func(t *testing.T) {
		s := newFixture(t)
		e := s.StoreFinalPayment("DemoShop_1", ledger.Successful)
		s.Operator.UserSMSFunc = func(operator.UserSMSCall) operator.Result {
			s.AssertReceived(t, 1)
			s.AssertDelivered(t, e)
			return operator.Result{Outcome: operator.Succeeded}
		}
		s.advanceUntilDue(t, e)
		want := sms(ledger.UserSMSSent)
		want.Delivered = 1
		s.AssertEntry(t, e, want)
	})
}

// A server that was too slow for the relay, and does not fail, has the slots of a server without known health. The
// notifications without a slot wait in line: the server gets all of them from the sweep.
func TestSlowMerchantServer(t *testing.T) {
	s := newFixture(t)
	s.HealthStore.StoreHealth(webhook.Health{Endpoint: endpoint(s), Version: 1, Slow: true})
	const slots = 8
	full, release := make(chan struct{}, 40), make(chan struct{})
	s.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) {
		full <- struct{}{}
		<-release
	})
	var entries []*ledger.Entry
	for i := range 40 {
		entries = append(entries, s.StoreDueNotification(fmt.Sprint("DemoShop_", i)))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.runSweep(t)
	}()
	for range slots {
		<-full
	}
	select {
	case <-full:
		t.Errorf("more than %d attempts before the first response", slots)
	default:
	}
	close(release)
	<-done
	s.AssertDelivered(t, entries...)
}

// A parked notification counts for 7 days: a merchant that is gone must not keep the alarm on.
func TestParkedAge(t *testing.T) {
	const week, none = 7 * 24 * time.Hour, -1
	for age, want := range map[time.Duration]int{week: int(week.Milliseconds()), week + time.Millisecond: none} {
		s := newFixture(t)
		now := ledger.Timestamp(s.Clock.Now())
		s.HealthStore.StoreHealth(webhook.Health{Endpoint: endpoint(s), DisabledVersion: 1, DisabledAt: now.Add(-age)})
		e := s.StoreEntry(s.StoreDueNotification("DemoShop_1"), func(e *ledger.Entry) {
			e.Outbox.Park(now)
			e.Outbox.Head().At, e.Outbox.Head().NextAttemptAt = now.Add(-age), now
			e.Reschedule()
		})
		s.runSweep(t)
		if got := s.LogLines.MaxMetric("ParkedMillis"); got != want {
			t.Errorf("after %s: parked for %d ms, want %d", age, got, want)
		}
		if wait := s.nextAttempt(t, e); wait != 24*time.Hour {
			t.Errorf("after %s: the next check is after %s, want a day", age, wait)
		}
	}
}

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
