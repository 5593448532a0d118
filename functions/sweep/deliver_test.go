package sweep_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"mobilegateway/internal/deliverytest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/webhook"
)

func webhookEndpoint(s *sweepFixture) webhook.Endpoint {
	return webhook.Endpoint{MerchantID: "demo0001", URL: s.MerchantServer.URL + "/demo"}
}

// The whole schedule, from the first attempt to the dead letter, and its replay (decision "notifications").
func TestSchedule(t *testing.T) {
	s := newFixture(t)
	s.MerchantServer.RespondWith("/demo", 500)
	e := s.StoreDueNotification("DemoShop_1")
	s.runSweep(t)
	schedule := webhook.DefaultSchedule()
	for made := 1; made < len(schedule); made++ {
		if notification := s.MustHead(t, e); notification.Attempts != made || notification.LastStatus != 500 || notification.LastReason != webhook.ReasonServer || notification.DeadReason != "" {
			t.Fatalf("after %d attempts %+v", made, notification)
		}
		wait := s.MustHead(t, e).NextAttemptAt.Sub(s.Clock.Now())
		if base := schedule[made]; wait < base*4/5 || wait > base*6/5 {
			t.Errorf("attempt %d waits %s of %s", made+1, wait, base)
		}
		s.runSweepAfter(t, wait-time.Millisecond)
		if posts := len(s.MerchantServer.Received("")); posts != made {
			t.Fatalf("%d posts before attempt %d", posts, made+1)
		}
		s.runSweepAfter(t, time.Millisecond)
	}
	dead := s.MustGet(t, e)
	if notification := dead.OutboxHead(); notification.DeadReason != webhook.ReasonServer || notification.Attempts != len(schedule) || !dead.DueAt.IsZero() {
		t.Fatalf("after all attempts %+v", notification)
	}
	if s.LogLines.SumMetric("DeadLetters") != 1 || s.LogLines.SumMetric("DeliveryAttemptFailures") != len(schedule) {
		t.Errorf("%d dead letters, %d failures", s.LogLines.SumMetric("DeadLetters"), s.LogLines.SumMetric("DeliveryAttemptFailures"))
	}
	if age := s.Clock.Now().Sub(e.CreatedAt); age < 60*time.Hour || age > 92*time.Hour {
		t.Errorf("given up after %s", age)
	}
	s.runSweepAfter(t, 1000*time.Hour)
	if len(s.MerchantServer.Received("")) != len(schedule) {
		t.Error("tried after it was given up")
	}

	s.MerchantServer.RespondFunc("/demo", nil)
	dead.ReplayNotification(dead.OutboxHead().ID, ledger.Timestamp(s.Clock.Now()))
	s.StoreEntry(dead)
	s.advanceUntilDue(t, e)
	if after := s.MustGet(t, e); len(after.Delivered) != 1 || len(after.Outbox) != 0 || !after.DueAt.IsZero() {
		t.Errorf("after the replay %+v", after)
	}
	for _, post := range s.MerchantServer.Received("") {
		if post.ID() != ledger.NotificationID(e.Key, ledger.Failed) {
			t.Errorf("webhook-id %s", post.ID())
		}
	}
}

func TestRetryAfter(t *testing.T) {
	cases := []struct {
		name   string
		status int
		value  string
		want   time.Duration // at least
		most   time.Duration
	}{
		{"an hour", 429, "3600", time.Hour, time.Hour},
		{"a day", 502, "86400", 24 * time.Hour, 24 * time.Hour},
		{"no more than a day", 504, "8640000", 24 * time.Hour, 24 * time.Hour},
		{"less than the schedule", 429, "1", 4 * time.Second, 6 * time.Second},
		{"not with 503", 503, "3600", 4 * time.Second, 6 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t)
			s.MerchantServer.RespondWith("/demo", c.status, "Retry-After", c.value)
			e := s.StoreDueNotification("DemoShop_1")
			s.runSweep(t)
			wait := s.MustHead(t, e).NextAttemptAt.Sub(s.Clock.Now())
			if wait < c.want || wait > c.most {
				t.Fatalf("waits %s", wait)
			}
			s.runSweepAfter(t, wait-time.Millisecond)
			if len(s.MerchantServer.Received("")) != 1 {
				t.Error("tried too early: a claim's lease is no schedule")
			}
			s.MerchantServer.RespondFunc("/demo", nil)
			s.runSweepAfter(t, time.Millisecond)
			if len(s.MustGet(t, e).Delivered) != 1 {
				t.Errorf("%+v", s.MustGet(t, e).Outbox)
			}
		})
	}
}

// 410 disables the endpoint and parks what waits there, clock stopped; enabled again, all goes in its order.
func TestDisabledEndpoint(t *testing.T) {
	s := newFixture(t)
	s.MerchantServer.RespondWith("/demo", 410)
	message := s.StoreMessage("m-1", ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal)
	s.advanceUntilDue(t, message)
	later := s.StoreDueNotification("DemoShop_2")
	s.runSweep(t)
	if health := s.HealthStore.Stored(webhookEndpoint(s)); health.Enabled() || health.LastStatus != 410 {
		t.Errorf("health %+v", health)
	}
	for _, e := range []*ledger.Entry{message, later} {
		if after := s.MustGet(t, e); !after.OutboxHead().Parked || !after.DueAt.IsZero() {
			t.Errorf("%s: %+v", e.Key, after.OutboxHead())
		}
	}
	s.runSweepAfter(t, 500*time.Hour)
	if len(s.MerchantServer.Received("")) != 1 || s.LogLines.SumMetric("DeadLetters") != 0 {
		t.Errorf("%d posts, %d dead letters", len(s.MerchantServer.Received("")), s.LogLines.SumMetric("DeadLetters"))
	}

	s.MerchantServer.RespondFunc("/demo", nil)
	s.HealthStore.StoreHealth(s.HealthStore.Stored(webhookEndpoint(s)).AfterEnable(s.Clock.Now()))
	for _, e := range []*ledger.Entry{message, later} {
		s.StoreEntry(s.MustGet(t, e), func(e *ledger.Entry) { e.Unpark(ledger.Timestamp(s.Clock.Now())) })
	}
	for range 4 {
		s.runSweepAfter(t, ledger.FastLease)
	}
	var order []string
	for _, post := range s.MerchantServer.Received("")[1:] {
		order = append(order, post.ID())
	}
	want := []string{}
	for _, status := range []ledger.Status{ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal} {
		want = append(want, ledger.NotificationID(message.Key, status))
	}
	at := 0
	for _, id := range order {
		if at < len(want) && id == want[at] {
			at++
		}
	}
	if at != len(want) || len(order) != 4 || len(s.MustGet(t, message).Outbox)+len(s.MustGet(t, later).Outbox) != 0 {
		t.Errorf("%d posts, %d of the message's in order", len(order), at)
	}
}

// Per message an earlier status is never told after a later one, whatever fails in between (decision
// "notification-order").
func TestDeliveryOrder(t *testing.T) {
	s := newFixture(t)
	s.MerchantServer.RespondWith("/demo", 500)
	e := s.StoreMessage("m-1", ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal)
	for range 4 {
		s.advanceUntilDue(t, e)
	}
	s.MerchantServer.RespondFunc("/demo", nil)
	for !s.MustGet(t, e).DueAt.IsZero() {
		s.advanceUntilDue(t, e)
	}
	posts := s.MerchantServer.Received("")
	var last []string
	for _, post := range posts {
		if len(last) == 0 || last[len(last)-1] != post.ID() {
			last = append(last, post.ID())
		}
	}
	if len(last) != 3 || len(posts) != 4+3 || len(s.MustGet(t, e).Delivered) != 3 {
		t.Errorf("%d posts, turns %v", len(posts), last)
	}
}

// Five failures in a row close the fast path; a success opens it again.
func TestFastPath(t *testing.T) {
	s := newFixture(t)
	s.MerchantServer.RespondWith("/demo", 500)
	e := s.StoreDueNotification("DemoShop_1")
	s.runSweep(t)
	for failures := 1; failures < 5; failures++ {
		if !s.HealthStore.Stored(webhookEndpoint(s)).AllowsFastPath() {
			t.Fatalf("closed after %d failures", failures)
		}
		s.advanceUntilDue(t, e)
	}
	if s.HealthStore.Stored(webhookEndpoint(s)).AllowsFastPath() {
		t.Fatal("open after five failures")
	}
	s.MerchantServer.RespondFunc("/demo", nil)
	s.advanceUntilDue(t, e)
	if !s.HealthStore.Stored(webhookEndpoint(s)).AllowsFastPath() || len(s.MustGet(t, e).Delivered) != 1 {
		t.Errorf("%+v", s.HealthStore.Stored(webhookEndpoint(s)))
	}
}

// A new notification is the relay's for a minute.
func TestRelayLease(t *testing.T) {
	s := newFixture(t)
	e := s.StoreFinalPayment("DemoShop_1", ledger.Failed)
	s.runSweepAfter(t, ledger.FastLease-time.Millisecond)
	if len(s.MerchantServer.Received("")) != 0 {
		t.Error("posted during the relay's lease")
	}
	s.runSweepAfter(t, time.Millisecond)
	if len(s.MerchantServer.Received("")) != 1 || len(s.MustGet(t, e).Delivered) != 1 {
		t.Errorf("%+v", s.MustGet(t, e).Outbox)
	}
}

// A post whose storing was lost is made again under its own id.
func TestStoreFailure(t *testing.T) {
	s := newFixture(t)
	e := s.StoreDueNotification("DemoShop_1")
	s.HealthStore.SetError(errors.New("down"))
	s.runSweep(t)
	if len(s.MerchantServer.Received("")) != 0 || s.MustHead(t, e).Attempts != 0 {
		t.Errorf("posted without knowing the endpoint's health: %+v", s.MustHead(t, e))
	}
	s.HealthStore.SetError(nil)
	s.MerchantServer.RespondFunc("/demo", nil)
	s.runSweep(t)
	if len(s.MustGet(t, e).Delivered) != 1 {
		t.Errorf("%+v", s.MustGet(t, e).Outbox)
	}
}

// The purchaser's SMS: claimed, once, on its own schedule to its end (decision "user-sms").
func TestUserSMS(t *testing.T) {
	success := func(s *sweepFixture) *ledger.Entry {
		return s.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) { e.NotifyURL, e.Outbox = "", nil })
	}
	t.Run("sent once", func(t *testing.T) {
		s := newFixture(t)
		e := success(s)
		s.advanceUntilDue(t, e)
		s.runSweepAfter(t, 100*time.Hour)
		if after := s.MustGet(t, e); after.UserSMS != ledger.UserSMSSent || len(s.Operator.UserSMSCalls()) != 1 || after.UserSMSAttempts != 1 || !after.DueAt.IsZero() {
			t.Errorf("%+v", after)
		}
	})
	t.Run("tried until the schedule ends, then given up and counted", func(t *testing.T) {
		s := newFixture(t)
		s.Operator.SetUserSMSFunc(func(operator.UserSMSCall) operator.Result { return operator.Result{} })
		e := success(s)
		var waits []time.Duration
		for !s.MustGet(t, e).DueAt.IsZero() {
			waits = append(waits, s.advanceUntilDue(t, e))
		}
		want := append([]time.Duration{ledger.FastLease}, deliverytest.PollSchedule()[1:]...)
		if len(waits) != len(want) || s.MustGet(t, e).UserSMS != ledger.UserSMSUnknown || s.LogLines.SumMetric("UserSMSFailures") != 1 {
			t.Fatalf("tried after %v, then %q", waits, s.MustGet(t, e).UserSMS)
		}
		for i := range want {
			if waits[i] != want[i] {
				t.Errorf("try %d after %s, want %s", i+1, waits[i], want[i])
			}
		}
		for _, call := range s.Operator.UserSMSCalls() {
			if call.IdempotencyKey != "DemoShop_1" {
				t.Errorf("sent under %s", call.IdempotencyKey)
			}
		}
	})
	t.Run("a duplicate on a further try was sent", func(t *testing.T) {
		s := newFixture(t)
		s.Operator.SetUserSMSFunc(func(call operator.UserSMSCall) operator.Result { return operator.Result{DuplicateKey: call.MayRepeat} })
		e := success(s)
		s.advanceUntilDue(t, e)
		if s.MustGet(t, e).UserSMS != ledger.UserSMSSent {
			t.Errorf("%+v", s.MustGet(t, e))
		}
	})
	t.Run("a slow one never delays the notification", func(t *testing.T) {
		s := newFixture(t)
		e := s.StoreFinalPayment("DemoShop_1", ledger.Successful)
		s.Operator.SetUserSMSFunc(func(operator.UserSMSCall) operator.Result {
			if len(s.MerchantServer.Received("")) != 1 || len(s.MustGet(t, e).Delivered) != 1 {
				t.Error("the SMS went first")
			}
			return operator.Result{Outcome: operator.Succeeded}
		})
		s.advanceUntilDue(t, e)
		if s.MustGet(t, e).UserSMS != ledger.UserSMSSent {
			t.Errorf("%+v", s.MustGet(t, e))
		}
	})
}

// A slow server that takes what it gets has more places than one that fails, yet not all; what finds none waits a
// minute, and spends no attempt.
func TestSlowMerchantServer(t *testing.T) {
	s := newFixture(t)
	s.HealthStore.StoreHealth(webhook.Health{Endpoint: webhookEndpoint(s), Version: 1, Slow: true})
	release := make(chan struct{})
	s.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) { <-release })
	var entries []*ledger.Entry
	for i := range 40 {
		entries = append(entries, s.StoreDueNotification(fmt.Sprint("DemoShop_", i)))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.runSweep(t)
	}()
	for deadline := time.Now().Add(10 * time.Second); len(s.MerchantServer.Received("")) < 8 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	close(release)
	<-done
	for _, e := range entries {
		if after := s.MustGet(t, e); len(after.Delivered) == 0 && !after.OutboxHead().NextAttemptAt.Equal(s.Clock.Now().Add(time.Minute)) {
			t.Errorf("%+v", after.OutboxHead())
		}
	}
	s.runSweepAfter(t, time.Minute)
	for _, e := range entries {
		if len(s.MustGet(t, e).Delivered) != 1 {
			t.Errorf("%s is not told: %+v", e.ID, s.MustGet(t, e).Outbox)
		}
	}
}
