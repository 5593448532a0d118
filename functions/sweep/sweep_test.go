package sweep_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"mobilegateway/internal/deliverytest"
	"mobilegateway/internal/ledgermem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/webhook"
)

// A sweep over nothing due makes one query a shard and nothing else, however much is settled.
func TestNothingDue(t *testing.T) {
	for _, settled := range []int{0, 10, 100_000} {
		t.Run(fmt.Sprint(settled, " settled"), func(t *testing.T) {
			s := kit(t)
			for i := range settled {
				e := s.Reserved(fmt.Sprint("DemoShop_", i))
				e.State, e.Status = ledger.Done, ledger.Successful
				s.Store(e)
			}
			s.after(t, time.Hour)
			queries, reads, writes := s.Ledger.Calls(ledgermem.DueKeys), s.Ledger.Calls(ledgermem.Get), s.Ledger.Writes()
			if queries != ledger.DueShards || reads != 0 || writes != 0 || s.Lines.Count() != 0 {
				t.Errorf("%d queries, %d reads, %d writes, %d lines", queries, reads, writes, s.Lines.Count())
			}
			if len(s.Shop.Posts("")) != 0 || len(s.Operator.Lookups()) != 0 || s.Health.Writes() != 0 || s.Profiles.Calls() != 0 {
				t.Error("something was done")
			}
		})
	}
}

// Reservations whose owner died (decision "leases").
func TestLapsed(t *testing.T) {
	t.Run("a payment is looked up at once", func(t *testing.T) {
		s := kit(t)
		s.Operator.Says("Successful")
		e := s.Store(s.Reserved("DemoShop_1"))
		s.after(t, 24*time.Second)
		if s.Get(t, e).Version != e.Version {
			t.Fatal("touched during its lease")
		}
		s.after(t, time.Second)
		after := s.Get(t, e)
		if after.Status != ledger.Successful || after.State != ledger.Done || len(after.Outbox) != 1 || !after.EverUnknown {
			t.Errorf("%+v", after)
		}
		if s.Lines.Sum("Unknowns") != 1 {
			t.Errorf("%d unknowns counted", s.Lines.Sum("Unknowns"))
		}
		if !strings.Contains(s.Lines.String(), `"Stack":"`+stack+`","Operation":"sweep"`) {
			t.Errorf("the line does not name the stack: %s", s.Lines)
		}
	})
	t.Run("a payment that a callback settled is done", func(t *testing.T) {
		s := kit(t)
		e := s.Store(s.Reserved("DemoShop_1"), func(e *ledger.Entry) {
			e.Resolve(ledger.Resolution{Status: ledger.Failed, Source: "callback"}, s.Clock.Now())
		})
		s.after(t, 25*time.Second)
		if after := s.Get(t, e); after.State != ledger.Done || len(s.Operator.Lookups()) != 0 || s.Lines.Sum("Unknowns") != 0 {
			t.Errorf("%+v", after)
		}
	})
	for _, kind := range []ledger.Kind{ledger.Charge, ledger.SMS} {
		t.Run("a lost "+string(kind)+" is unknown, and listed after 15 minutes and then hourly", func(t *testing.T) {
			s := kit(t)
			e := s.NewMessage("m-1")
			e.Kind = kind
			s.Store(e)
			s.after(t, 25*time.Second)
			if after := s.Get(t, e); after.State != ledger.Unknown || s.Lines.Sum("StaleUnknowns") != 0 || !after.Due.Equal(s.Clock.Now().Add(ledger.StaleAfter)) {
				t.Fatalf("%+v\n%s", after, s.Lines)
			}
			for listed, wait := range []time.Duration{ledger.StaleAfter, time.Hour, time.Hour} {
				if got := s.untilDue(t, e); got != wait || s.Lines.Sum("StaleUnknowns") != listed+1 {
					t.Errorf("listed %d times after %s, want %s", s.Lines.Sum("StaleUnknowns"), got, wait)
				}
			}
			if s.Get(t, e).State != ledger.Unknown || len(s.Operator.Lookups()) != 0 {
				t.Errorf("%+v", s.Get(t, e))
			}
		})
	}
	t.Run("an unknown charge is first listed 15 minutes after it became so", func(t *testing.T) {
		s := kit(t)
		charge := s.NewMessage("c-1")
		charge.Kind = ledger.Charge
		e := s.Unknown(charge)
		s.after(t, 15*time.Minute-time.Second)
		if s.Lines.Count() != 0 {
			t.Error("too early")
		}
		s.after(t, time.Second)
		if s.Lines.Sum("StaleUnknowns") != 1 || s.Get(t, e).Due.IsZero() {
			t.Errorf("%s", s.Lines)
		}
	})
}

// Two sweeps at once: each act is claimed, so that it is done once.
func TestTwoAtOnce(t *testing.T) {
	s := kit(t)
	const entries = 12
	s.Operator.Asked(func(call operator.StatusCall) operator.StatusAnswer {
		return operator.StatusAnswer{Known: true, Status: "Failed"}
	})
	var due, pending []*ledger.Entry
	for i := range entries {
		due = append(due, s.Due(fmt.Sprint("DemoShop_", i)))
		pending = append(pending, s.Payment(fmt.Sprint("DemoShop_", 100+i), func(e *ledger.Entry) { e.PollAt = e.CreatedAt }))
	}
	sms := s.Final("DemoShop_500", ledger.Successful, func(e *ledger.Entry) { e.UserSMSAt = e.CreatedAt })
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { s.run(t) })
	}
	group.Wait()
	if posts, lookups, sent := len(s.Shop.Posts("")), len(s.Operator.Lookups()), len(s.Operator.SMS()); posts != entries || lookups != entries || sent != 1 {
		t.Errorf("%d posts, %d lookups, %d SMS", posts, lookups, sent)
	}
	for _, e := range due {
		if after := s.Get(t, e); len(after.Told) != 1 || !after.Due.IsZero() {
			t.Errorf("%+v", after)
		}
	}
	for _, e := range pending {
		if after := s.Get(t, e); after.Status != ledger.Failed || len(after.Outbox) != 1 || len(after.Conflicts) != 0 {
			t.Errorf("%+v", after)
		}
	}
	if s.Get(t, sms).UserSMS != ledger.UserSMSSent {
		t.Errorf("%+v", s.Get(t, sms))
	}
}

// Nothing is begun in the invocation's last 20 seconds, and nothing is lost by it.
func TestBoundedByTime(t *testing.T) {
	s := kit(t)
	var entries []*ledger.Entry
	for i := range 200 {
		entries = append(entries, s.Due(fmt.Sprint("DemoShop_", i)))
	}
	s.Shop.Handle("/demo", func(http.ResponseWriter, *http.Request) { s.Clock.Advance(time.Second) })
	began := s.Clock.Now()
	ctx, cancel := context.WithDeadline(context.Background(), began.Add(timeout))
	defer cancel()
	if _, err := s.sweep.Invoke(ctx, nil); err != nil {
		t.Fatal(err)
	}
	posts := len(s.Shop.Posts(""))
	if posts == 0 || posts > 40+64 {
		t.Errorf("%d posts of a second each in a minute", posts)
	}
	s.Shop.Handle("/demo", nil)
	for range 3 { // by this clock the server was slow, so that some were put off
		s.after(t, 5*deliverytest.Interval)
	}
	for _, e := range entries {
		if after := s.Get(t, e); len(after.Told) != 1 {
			t.Fatalf("%s is not told: %+v", e.ID, after.Outbox)
		}
	}
	if total := len(s.Shop.Posts("")); total != len(entries) {
		t.Errorf("%d posts for %d notifications", total, len(entries))
	}
	t.Run("with no time left nothing is begun", func(t *testing.T) {
		s := kit(t)
		s.Due("DemoShop_1")
		if _, err := s.sweep.Invoke(s.Context(t, 19*time.Second), nil); err != nil {
			t.Fatal(err)
		}
		if len(s.Shop.Posts("")) != 0 || s.Ledger.Writes() != 0 {
			t.Error("something was begun")
		}
	})
}

// A broken entry, a broken driver, a merchant without secrets: the others get on.
func TestAPoisonEntryStopsNobody(t *testing.T) {
	poison := ledger.Key{Kind: ledger.Payment, ID: "DemoShop_666"}
	cases := []struct {
		name   string
		poison func(*service)
	}{
		{"that cannot be read", func(s *service) {
			s.Ledger.SetFaults(func(call ledgermem.Call) ledgermem.Fault {
				if call.Operation == ledgermem.Get && call.Key == poison {
					return ledgermem.Error
				}
				return ledgermem.None
			})
		}},
		{"that cannot be written", func(s *service) {
			s.Ledger.SetFaults(func(call ledgermem.Call) ledgermem.Fault {
				if call.Operation == ledgermem.Replace && call.Key == poison {
					return ledgermem.Error
				}
				return ledgermem.None
			})
		}},
		{"at which the driver breaks down", func(s *service) {
			s.Operator.Asked(func(operator.StatusCall) operator.StatusAnswer { panic("canary") })
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := kit(t)
			s.Payment(poison.ID, func(e *ledger.Entry) { e.PollAt = e.CreatedAt })
			c.poison(s)
			var others []*ledger.Entry
			for i := range 40 {
				others = append(others, s.Due(fmt.Sprint("DemoShop_", i)))
			}
			s.run(t)
			for _, e := range others {
				if len(s.Get(t, e).Told) != 1 {
					t.Errorf("%s is not told", e.ID)
				}
			}
			if s.Lines.Count() != 41 {
				t.Errorf("%d lines", s.Lines.Count())
			}
		})
	}
	t.Run("a merchant whose secrets cannot be had: no attempt is spent, and the purchaser gets the SMS", func(t *testing.T) {
		s := kit(t)
		e := s.Final("DemoShop_1", ledger.Successful, func(e *ledger.Entry) {
			e.Outbox[0].Next, e.UserSMSAt = e.CreatedAt, e.CreatedAt
		})
		s.Profiles.Fail(nil)
		for range 20 {
			s.after(t, time.Minute)
		}
		after := s.Get(t, e)
		if after.Head().Attempt != 0 || after.UserSMS != ledger.UserSMSSent || len(s.Shop.Posts("")) != 0 || s.Lines.Max("OverdueMillis") < 20*60_000 {
			t.Errorf("%+v\n%s", after, s.Lines)
		}
		s.Profiles.Heal()
		s.run(t)
		if len(s.Get(t, e).Told) != 1 {
			t.Errorf("%+v", s.Get(t, e).Outbox)
		}
	})
}

// A shard that cannot be read fails the invocation, and the other shards are worked on all the same.
func TestAShardThatCannotBeRead(t *testing.T) {
	s := kit(t)
	e := s.Due("DemoShop_1")
	broken := false
	s.Ledger.SetFaults(func(call ledgermem.Call) ledgermem.Fault {
		if call.Operation == ledgermem.DueKeys && !broken {
			broken = true
			return ledgermem.Error
		}
		return ledgermem.None
	})
	if _, err := s.sweep.Invoke(s.Context(t, timeout), nil); err == nil {
		t.Error("no error")
	}
	s.run(t)
	if len(s.Get(t, e).Told) != 1 {
		t.Errorf("%+v", s.Get(t, e))
	}
}

// The index lags: what is not due any more is left alone.
func TestTheIndexLags(t *testing.T) {
	s := kit(t)
	told := s.Final("DemoShop_1", ledger.Failed)
	told.Delivered(told.Head().ID, s.Clock.Now())
	s.Store(told)
	s.sweep.Queue = lagging{s.Ledger, []ledger.Key{told.Key, {Kind: ledger.Payment, ID: "DemoShop_404"}}}
	s.run(t)
	if s.Ledger.Writes() != 0 || len(s.Shop.Posts("")) != 0 || len(s.Operator.Lookups()) != 0 {
		t.Errorf("%d writes", s.Ledger.Writes())
	}
}

// lagging is an index that still shows what is not due.
type lagging struct {
	ledger.Queue
	keys []ledger.Key
}

func (l lagging) DueKeys(_ context.Context, shard int, _ time.Time, _ int) ([]ledger.Key, error) {
	var keys []ledger.Key
	for _, key := range l.keys {
		if ledger.DueShard(key) == shard {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// A dead merchant's backlog is tried at a few at a time and moved on, so that it holds up nobody (decision
// "notifications"); what is put off spends no attempt.
func TestADeadMerchantHoldsUpNobody(t *testing.T) {
	s := kit(t)
	dead := s.Shop.URL + "/dead/"
	s.Health.Set(webhook.Health{Endpoint: webhook.Endpoint{MerchantID: "demo0001", URL: dead}, Version: 1, Failures: 5})
	release := make(chan struct{})
	var backlog []*ledger.Entry
	for i := range 60 { // each has a URL of its own
		s.Shop.Handle(fmt.Sprint("/dead/", i), func(w http.ResponseWriter, _ *http.Request) {
			<-release
			w.WriteHeader(500)
		})
		backlog = append(backlog, s.Due(fmt.Sprint("DemoShop_", i), func(e *ledger.Entry) {
			e.NotifyURL = dead + fmt.Sprint(i)
			e.CreatedAt = e.CreatedAt.Add(-time.Hour)
		}))
	}
	s.Clock.Advance(time.Second)
	other := s.Due("OtherShop_1000", func(e *ledger.Entry) { e.MerchantID = "othr0002" })
	s.runWhileHanging(t, other, release)
	tried, put := 0, 0
	for _, e := range backlog {
		head := s.Head(t, e)
		switch {
		case head.Attempt == 1:
			tried++
		case head.Next.Equal(s.Clock.Now().Add(5 * time.Minute)):
			put++
		}
	}
	if posts := len(s.Shop.Posts("")) - 1; tried == 0 || tried+put != len(backlog) || posts != tried {
		t.Errorf("%d tried, %d put off of %d; %d posts", tried, put, len(backlog), posts)
	}
	for i := range backlog {
		s.Shop.Handle(fmt.Sprint("/dead/", i), nil)
	}
	for range 4 {
		s.after(t, 6*time.Minute)
	}
	for _, e := range backlog {
		if len(s.Get(t, e).Told) != 1 {
			t.Errorf("%s is not told: %+v", e.ID, s.Get(t, e).Outbox)
		}
	}
}
