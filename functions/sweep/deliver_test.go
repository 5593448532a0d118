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

func endpoint(s *service) webhook.Endpoint {
	return webhook.Endpoint{MerchantID: "demo0001", URL: s.Shop.URL + "/demo"}
}

// The whole schedule, from the first attempt to the dead letter, and its replay (decision "notifications").
func TestSchedule(t *testing.T) {
	s := kit(t)
	s.Shop.Answers("/demo", 500)
	e := s.Due("DemoShop_1")
	s.run(t)
	schedule := webhook.DefaultSchedule()
	for made := 1; made < len(schedule); made++ {
		if head := s.Head(t, e); head.Attempt != made || head.LastCode != 500 || head.LastWhy != webhook.WhyServer || head.Dead != "" {
			t.Fatalf("after %d attempts %+v", made, head)
		}
		wait := s.Head(t, e).Next.Sub(s.Clock.Now())
		if base := schedule[made]; wait < base*4/5 || wait > base*6/5 {
			t.Errorf("attempt %d waits %s of %s", made+1, wait, base)
		}
		s.after(t, wait-time.Millisecond)
		if posts := len(s.Shop.Posts("")); posts != made {
			t.Fatalf("%d posts before attempt %d", posts, made+1)
		}
		s.after(t, time.Millisecond)
	}
	dead := s.Get(t, e)
	if head := dead.Head(); head.Dead != webhook.WhyServer || head.Attempt != len(schedule) || !dead.Due.IsZero() {
		t.Fatalf("after all attempts %+v", head)
	}
	if s.Lines.Sum("DeadLetters") != 1 || s.Lines.Sum("DeliveryFailures") != len(schedule) {
		t.Errorf("%d dead letters, %d failures", s.Lines.Sum("DeadLetters"), s.Lines.Sum("DeliveryFailures"))
	}
	if age := s.Clock.Now().Sub(e.CreatedAt); age < 60*time.Hour || age > 92*time.Hour {
		t.Errorf("given up after %s", age)
	}
	s.after(t, 1000*time.Hour)
	if len(s.Shop.Posts("")) != len(schedule) {
		t.Error("tried after it was given up")
	}

	s.Shop.Handle("/demo", nil)
	dead.Replay(dead.Head().ID, ledger.Moment(s.Clock.Now()))
	s.Store(dead)
	s.untilDue(t, e)
	if after := s.Get(t, e); len(after.Told) != 1 || len(after.Outbox) != 0 || !after.Due.IsZero() {
		t.Errorf("after the replay %+v", after)
	}
	for _, post := range s.Shop.Posts("") {
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
			s := kit(t)
			s.Shop.Answers("/demo", c.status, "Retry-After", c.value)
			e := s.Due("DemoShop_1")
			s.run(t)
			wait := s.Head(t, e).Next.Sub(s.Clock.Now())
			if wait < c.want || wait > c.most {
				t.Fatalf("waits %s", wait)
			}
			s.after(t, wait-time.Millisecond)
			if len(s.Shop.Posts("")) != 1 {
				t.Error("tried too early: a claim's lease is no schedule")
			}
			s.Shop.Handle("/demo", nil)
			s.after(t, time.Millisecond)
			if len(s.Get(t, e).Told) != 1 {
				t.Errorf("%+v", s.Get(t, e).Outbox)
			}
		})
	}
}

// 410 disables the endpoint and parks what waits there, clock stopped; enabled again, all goes in its order.
func TestDisabledEndpoint(t *testing.T) {
	s := kit(t)
	s.Shop.Answers("/demo", 410)
	message := s.Message("m-1", ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal)
	s.untilDue(t, message)
	later := s.Due("DemoShop_2")
	s.run(t)
	if health := s.Health.Of(endpoint(s)); health.Enabled() || health.LastStatus != 410 {
		t.Errorf("health %+v", health)
	}
	for _, e := range []*ledger.Entry{message, later} {
		if after := s.Get(t, e); !after.Head().Parked || !after.Due.IsZero() {
			t.Errorf("%s: %+v", e.Key, after.Head())
		}
	}
	s.after(t, 500*time.Hour)
	if len(s.Shop.Posts("")) != 1 || s.Lines.Sum("DeadLetters") != 0 {
		t.Errorf("%d posts, %d dead letters", len(s.Shop.Posts("")), s.Lines.Sum("DeadLetters"))
	}

	s.Shop.Handle("/demo", nil)
	s.Health.Set(s.Health.Of(endpoint(s)).Enable(s.Clock.Now()))
	for _, e := range []*ledger.Entry{message, later} {
		s.Store(s.Get(t, e), func(e *ledger.Entry) { e.Unpark(ledger.Moment(s.Clock.Now())) })
	}
	for range 4 {
		s.after(t, ledger.FastLease)
	}
	var order []string
	for _, post := range s.Shop.Posts("")[1:] {
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
	if at != len(want) || len(order) != 4 || len(s.Get(t, message).Outbox)+len(s.Get(t, later).Outbox) != 0 {
		t.Errorf("%d posts, %d of the message's in order", len(order), at)
	}
}

// Per message an earlier status is never told after a later one, whatever fails in between (decision
// "notification-order").
func TestOrderIsKept(t *testing.T) {
	s := kit(t)
	s.Shop.Answers("/demo", 500)
	e := s.Message("m-1", ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal)
	for range 4 {
		s.untilDue(t, e)
	}
	s.Shop.Handle("/demo", nil)
	for !s.Get(t, e).Due.IsZero() {
		s.untilDue(t, e)
	}
	posts := s.Shop.Posts("")
	var last []string
	for _, post := range posts {
		if len(last) == 0 || last[len(last)-1] != post.ID() {
			last = append(last, post.ID())
		}
	}
	if len(last) != 3 || len(posts) != 4+3 || len(s.Get(t, e).Told) != 3 {
		t.Errorf("%d posts, turns %v", len(posts), last)
	}
}

// Five failures in a row close the fast path; a success opens it again.
func TestFastPath(t *testing.T) {
	s := kit(t)
	s.Shop.Answers("/demo", 500)
	e := s.Due("DemoShop_1")
	s.run(t)
	for failures := 1; failures < 5; failures++ {
		if !s.Health.Of(endpoint(s)).FastPath() {
			t.Fatalf("closed after %d failures", failures)
		}
		s.untilDue(t, e)
	}
	if s.Health.Of(endpoint(s)).FastPath() {
		t.Fatal("open after five failures")
	}
	s.Shop.Handle("/demo", nil)
	s.untilDue(t, e)
	if !s.Health.Of(endpoint(s)).FastPath() || len(s.Get(t, e).Told) != 1 {
		t.Errorf("%+v", s.Health.Of(endpoint(s)))
	}
}

// A new notification is the relay's for a minute.
func TestTheRelaysLease(t *testing.T) {
	s := kit(t)
	e := s.Final("DemoShop_1", ledger.Failed)
	s.after(t, ledger.FastLease-time.Millisecond)
	if len(s.Shop.Posts("")) != 0 {
		t.Error("posted during the relay's lease")
	}
	s.after(t, time.Millisecond)
	if len(s.Shop.Posts("")) != 1 || len(s.Get(t, e).Told) != 1 {
		t.Errorf("%+v", s.Get(t, e).Outbox)
	}
}

// A post whose storing was lost is made again under its own id.
func TestStoringIsLost(t *testing.T) {
	s := kit(t)
	e := s.Due("DemoShop_1")
	s.Health.Fail(errors.New("down"))
	s.run(t)
	if len(s.Shop.Posts("")) != 0 || s.Head(t, e).Attempt != 0 {
		t.Errorf("posted without knowing the endpoint's health: %+v", s.Head(t, e))
	}
	s.Health.Fail(nil)
	s.Shop.Handle("/demo", nil)
	s.run(t)
	if len(s.Get(t, e).Told) != 1 {
		t.Errorf("%+v", s.Get(t, e).Outbox)
	}
}

// The purchaser's SMS: claimed, once, on its own schedule to its end (decision "user-sms").
func TestUserSMS(t *testing.T) {
	success := func(s *service) *ledger.Entry {
		return s.Final("DemoShop_1", ledger.Successful, func(e *ledger.Entry) { e.NotifyURL, e.Outbox = "", nil })
	}
	t.Run("sent once", func(t *testing.T) {
		s := kit(t)
		e := success(s)
		s.untilDue(t, e)
		s.after(t, 100*time.Hour)
		if after := s.Get(t, e); after.UserSMS != ledger.UserSMSSent || len(s.Operator.SMS()) != 1 || after.UserSMSTry != 1 || !after.Due.IsZero() {
			t.Errorf("%+v", after)
		}
	})
	t.Run("tried until the schedule ends, then given up and counted", func(t *testing.T) {
		s := kit(t)
		s.Operator.Sends(func(operator.UserSMSCall) operator.Result { return operator.Result{} })
		e := success(s)
		var waits []time.Duration
		for !s.Get(t, e).Due.IsZero() {
			waits = append(waits, s.untilDue(t, e))
		}
		want := append([]time.Duration{ledger.FastLease}, deliverytest.PollSchedule()[1:]...)
		if len(waits) != len(want) || s.Get(t, e).UserSMS != ledger.UserSMSUnknown || s.Lines.Sum("UserSMSFailures") != 1 {
			t.Fatalf("tried after %v, then %q", waits, s.Get(t, e).UserSMS)
		}
		for i := range want {
			if waits[i] != want[i] {
				t.Errorf("try %d after %s, want %s", i+1, waits[i], want[i])
			}
		}
		for _, call := range s.Operator.SMS() {
			if call.Key != "DemoShop_1" {
				t.Errorf("sent under %s", call.Key)
			}
		}
	})
	t.Run("a duplicate on a further try was sent", func(t *testing.T) {
		s := kit(t)
		s.Operator.Sends(func(call operator.UserSMSCall) operator.Result { return operator.Result{Duplicate: call.Resend} })
		e := success(s)
		s.untilDue(t, e)
		if s.Get(t, e).UserSMS != ledger.UserSMSSent {
			t.Errorf("%+v", s.Get(t, e))
		}
	})
	t.Run("a slow one never delays the notification", func(t *testing.T) {
		s := kit(t)
		e := s.Final("DemoShop_1", ledger.Successful)
		s.Operator.Sends(func(operator.UserSMSCall) operator.Result {
			if len(s.Shop.Posts("")) != 1 || len(s.Get(t, e).Told) != 1 {
				t.Error("the SMS went first")
			}
			return operator.Result{Outcome: operator.Done}
		})
		s.untilDue(t, e)
		if s.Get(t, e).UserSMS != ledger.UserSMSSent {
			t.Errorf("%+v", s.Get(t, e))
		}
	})
}

// A slow server that takes what it gets has more places than one that fails, yet not all; what finds none waits a
// minute, and spends no attempt.
func TestASlowMerchant(t *testing.T) {
	s := kit(t)
	s.Health.Set(webhook.Health{Endpoint: endpoint(s), Version: 1, Slow: true})
	release := make(chan struct{})
	s.Shop.Handle("/demo", func(http.ResponseWriter, *http.Request) { <-release })
	var entries []*ledger.Entry
	for i := range 40 {
		entries = append(entries, s.Due(fmt.Sprint("DemoShop_", i)))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run(t)
	}()
	for deadline := time.Now().Add(10 * time.Second); len(s.Shop.Posts("")) < 8 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	close(release)
	<-done
	for _, e := range entries {
		if after := s.Get(t, e); len(after.Told) == 0 && !after.Head().Next.Equal(s.Clock.Now().Add(time.Minute)) {
			t.Errorf("%+v", after.Head())
		}
	}
	s.after(t, time.Minute)
	for _, e := range entries {
		if len(s.Get(t, e).Told) != 1 {
			t.Errorf("%s is not told: %+v", e.ID, s.Get(t, e).Outbox)
		}
	}
}
