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
	for _, updated := range []int{0, 10, 100_000} {
		t.Run(fmt.Sprint(updated, " settled"), func(t *testing.T) {
			s := newFixture(t)
			for i := range updated {
				e := s.NewReservedPayment(fmt.Sprint("DemoShop_", i))
				e.State, e.Status = ledger.Done, ledger.Successful
				s.StoreEntry(e)
			}
			s.runSweepAfter(t, time.Hour)
			queries, reads, writes := s.Ledger.CallCount(ledgermem.DueKeys), s.Ledger.CallCount(ledgermem.Get), s.Ledger.WriteCount()
			if queries != ledger.DueShards || reads != 0 || writes != 0 || s.LogLines.LineCount() != 0 {
				t.Errorf("%d queries, %d reads, %d writes, %d lines", queries, reads, writes, s.LogLines.LineCount())
			}
			if len(s.MerchantServer.Received("")) != 0 || len(s.Operator.Lookups()) != 0 || s.HealthStore.Writes() != 0 || s.ProfileStore.Reads() != 0 {
				t.Error("something was done")
			}
		})
	}
}

// Reservations whose owner died (decision "leases").
func TestLapsedLease(t *testing.T) {
	t.Run("a payment is looked up at once", func(t *testing.T) {
		s := newFixture(t)
		s.Operator.SetStatus("Successful")
		e := s.StoreEntry(s.NewReservedPayment("DemoShop_1"))
		s.runSweepAfter(t, 24*time.Second)
		if s.MustGet(t, e).Version != e.Version {
			t.Fatal("touched during its lease")
		}
		s.runSweepAfter(t, time.Second)
		after := s.MustGet(t, e)
		if after.Status != ledger.Successful || after.State != ledger.Done || len(after.Outbox) != 1 || !after.EverUnknown {
			t.Errorf("%+v", after)
		}
		if s.LogLines.SumMetric("UnknownOutcomes") != 1 {
			t.Errorf("%d unknowns counted", s.LogLines.SumMetric("UnknownOutcomes"))
		}
		if !strings.Contains(s.LogLines.String(), `"Stack":"`+stack+`","Operation":"sweep"`) {
			t.Errorf("the line does not name the stack: %s", s.LogLines)
		}
	})
	t.Run("a payment that a callback settled is done", func(t *testing.T) {
		s := newFixture(t)
		e := s.StoreEntry(s.NewReservedPayment("DemoShop_1"), func(e *ledger.Entry) {
			e.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Failed, Source: "callback"}, s.Clock.Now())
		})
		s.runSweepAfter(t, 25*time.Second)
		if after := s.MustGet(t, e); after.State != ledger.Done || len(s.Operator.Lookups()) != 0 || s.LogLines.SumMetric("UnknownOutcomes") != 0 {
			t.Errorf("%+v", after)
		}
	})
	for _, kind := range []ledger.Kind{ledger.Charge, ledger.SMS} {
		t.Run("a lost "+string(kind)+" is unknown, and listed after 15 minutes and then hourly", func(t *testing.T) {
			s := newFixture(t)
			e := s.NewMessage("m-1")
			e.Kind = kind
			s.StoreEntry(e)
			s.runSweepAfter(t, 25*time.Second)
			if after := s.MustGet(t, e); after.State != ledger.Unknown || s.LogLines.SumMetric("StaleUnknownOutcomes") != 0 || !after.DueAt.Equal(s.Clock.Now().Add(ledger.StaleAfter)) {
				t.Fatalf("%+v\n%s", after, s.LogLines)
			}
			for listedKeys, wait := range []time.Duration{ledger.StaleAfter, time.Hour, time.Hour} {
				if got := s.advanceUntilDue(t, e); got != wait || s.LogLines.SumMetric("StaleUnknownOutcomes") != listedKeys+1 {
					t.Errorf("listed %d times after %s, want %s", s.LogLines.SumMetric("StaleUnknownOutcomes"), got, wait)
				}
			}
			if s.MustGet(t, e).State != ledger.Unknown || len(s.Operator.Lookups()) != 0 {
				t.Errorf("%+v", s.MustGet(t, e))
			}
		})
	}
	t.Run("an unknown charge is first listed 15 minutes after it became so", func(t *testing.T) {
		s := newFixture(t)
		charge := s.NewMessage("c-1")
		charge.Kind = ledger.Charge
		e := s.StoreUnknown(charge)
		s.runSweepAfter(t, 15*time.Minute-time.Second)
		if s.LogLines.LineCount() != 0 {
			t.Error("too early")
		}
		s.runSweepAfter(t, time.Second)
		if s.LogLines.SumMetric("StaleUnknownOutcomes") != 1 || s.MustGet(t, e).DueAt.IsZero() {
			t.Errorf("%s", s.LogLines)
		}
	})
}

// Two sweeps at once: each act is claimed, so that it is done once.
func TestConcurrentSweeps(t *testing.T) {
	s := newFixture(t)
	const entries = 12
	s.Operator.SetLookupFunc(func(call operator.StatusCall) operator.StatusResponse {
		return operator.StatusResponse{StatusKnown: true, OperatorStatus: "Failed"}
	})
	var due, pending []*ledger.Entry
	for i := range entries {
		due = append(due, s.StoreDueNotification(fmt.Sprint("DemoShop_", i)))
		pending = append(pending, s.StorePendingPayment(fmt.Sprint("DemoShop_", 100+i), func(e *ledger.Entry) { e.PollAt = e.CreatedAt }))
	}
	sms := s.StoreFinalPayment("DemoShop_500", ledger.Successful, func(e *ledger.Entry) { e.UserSMSAt = e.CreatedAt })
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { s.runSweep(t) })
	}
	group.Wait()
	if posts, lookups, sent := len(s.MerchantServer.Received("")), len(s.Operator.Lookups()), len(s.Operator.UserSMSCalls()); posts != entries || lookups != entries || sent != 1 {
		t.Errorf("%d posts, %d lookups, %d SMS", posts, lookups, sent)
	}
	for _, e := range due {
		if after := s.MustGet(t, e); len(after.Delivered) != 1 || !after.DueAt.IsZero() {
			t.Errorf("%+v", after)
		}
	}
	for _, e := range pending {
		if after := s.MustGet(t, e); after.Status != ledger.Failed || len(after.Outbox) != 1 || len(after.Conflicts) != 0 {
			t.Errorf("%+v", after)
		}
	}
	if s.MustGet(t, sms).UserSMS != ledger.UserSMSSent {
		t.Errorf("%+v", s.MustGet(t, sms))
	}
}

// Nothing is begun in the invocation's last 20 seconds, and nothing is lost by it.
func TestInvocationDeadline(t *testing.T) {
	s := newFixture(t)
	var entries []*ledger.Entry
	for i := range 200 {
		entries = append(entries, s.StoreDueNotification(fmt.Sprint("DemoShop_", i)))
	}
	s.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) { s.Clock.Advance(time.Second) })
	startedAt := s.Clock.Now()
	ctx, cancel := context.WithDeadline(context.Background(), startedAt.Add(timeout))
	defer cancel()
	if _, err := s.sweep.Invoke(ctx, nil); err != nil {
		t.Fatal(err)
	}
	posts := len(s.MerchantServer.Received(""))
	if posts == 0 || posts > 40+64 {
		t.Errorf("%d posts of a second each in a minute", posts)
	}
	s.MerchantServer.RespondFunc("/demo", nil)
	for range 3 { // by this clock the server was slow, so that some were put off
		s.runSweepAfter(t, 5*deliverytest.SweepInterval)
	}
	for _, e := range entries {
		if after := s.MustGet(t, e); len(after.Delivered) != 1 {
			t.Fatalf("%s is not told: %+v", e.ID, after.Outbox)
		}
	}
	if total := len(s.MerchantServer.Received("")); total != len(entries) {
		t.Errorf("%d posts for %d notifications", total, len(entries))
	}
	t.Run("with no time left nothing is begun", func(t *testing.T) {
		s := newFixture(t)
		s.StoreDueNotification("DemoShop_1")
		if _, err := s.sweep.Invoke(s.InvocationContext(t, 19*time.Second), nil); err != nil {
			t.Fatal(err)
		}
		if len(s.MerchantServer.Received("")) != 0 || s.Ledger.WriteCount() != 0 {
			t.Error("something was begun")
		}
	})
}

// A broken entry, a broken driver, a merchant without secrets: the others get on.
func TestBrokenEntryDoesNotBlockOthers(t *testing.T) {
	brokenEntry := ledger.Key{Kind: ledger.Payment, ID: "DemoShop_666"}
	cases := []struct {
		name   string
		poison func(*sweepFixture)
	}{
		{"that cannot be read", func(s *sweepFixture) {
			s.Ledger.InjectFaults(func(call ledgermem.Call) ledgermem.InjectedFault {
				if call.Operation == ledgermem.Get && call.Key == brokenEntry {
					return ledgermem.FailedBeforeApply
				}
				return ledgermem.NoFault
			})
		}},
		{"that cannot be written", func(s *sweepFixture) {
			s.Ledger.InjectFaults(func(call ledgermem.Call) ledgermem.InjectedFault {
				if call.Operation == ledgermem.Replace && call.Key == brokenEntry {
					return ledgermem.FailedBeforeApply
				}
				return ledgermem.NoFault
			})
		}},
		{"at which the driver breaks down", func(s *sweepFixture) {
			s.Operator.SetLookupFunc(func(operator.StatusCall) operator.StatusResponse { panic("canary") })
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t)
			s.StorePendingPayment(brokenEntry.ID, func(e *ledger.Entry) { e.PollAt = e.CreatedAt })
			c.poison(s)
			var others []*ledger.Entry
			for i := range 40 {
				others = append(others, s.StoreDueNotification(fmt.Sprint("DemoShop_", i)))
			}
			s.runSweep(t)
			for _, e := range others {
				if len(s.MustGet(t, e).Delivered) != 1 {
					t.Errorf("%s is not told", e.ID)
				}
			}
			if s.LogLines.LineCount() != 41 {
				t.Errorf("%d lines", s.LogLines.LineCount())
			}
		})
	}
	t.Run("a merchant whose secrets cannot be had: no attempt is spent, and the purchaser gets the SMS", func(t *testing.T) {
		s := newFixture(t)
		e := s.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) {
			e.Outbox[0].NextAttemptAt, e.UserSMSAt = e.CreatedAt, e.CreatedAt
		})
		s.ProfileStore.SetMissing(true)
		for range 20 {
			s.runSweepAfter(t, time.Minute)
		}
		after := s.MustGet(t, e)
		if after.OutboxHead().Attempts != 0 || after.UserSMS != ledger.UserSMSSent || len(s.MerchantServer.Received("")) != 0 || s.LogLines.MaxMetric("ScheduleDelayMillis") < 20*60_000 {
			t.Errorf("%+v\n%s", after, s.LogLines)
		}
		s.ProfileStore.SetMissing(false)
		s.runSweep(t)
		if len(s.MustGet(t, e).Delivered) != 1 {
			t.Errorf("%+v", s.MustGet(t, e).Outbox)
		}
	})
}

// A shard that cannot be read fails the invocation, and the other shards are worked on all the same.
func TestShardReadFailure(t *testing.T) {
	s := newFixture(t)
	e := s.StoreDueNotification("DemoShop_1")
	broken := false
	s.Ledger.InjectFaults(func(call ledgermem.Call) ledgermem.InjectedFault {
		if call.Operation == ledgermem.DueKeys && !broken {
			broken = true
			return ledgermem.FailedBeforeApply
		}
		return ledgermem.NoFault
	})
	if _, err := s.sweep.Invoke(s.InvocationContext(t, timeout), nil); err == nil {
		t.Error("no error")
	}
	s.runSweep(t)
	if len(s.MustGet(t, e).Delivered) != 1 {
		t.Errorf("%+v", s.MustGet(t, e))
	}
}

// The index lags: what is not due any more is left alone.
func TestStaleIndex(t *testing.T) {
	s := newFixture(t)
	delivered := s.StoreFinalPayment("DemoShop_1", ledger.Failed)
	delivered.MarkDelivered(delivered.OutboxHead().ID, s.Clock.Now())
	s.StoreEntry(delivered)
	s.sweep.Queue = laggingQueue{s.Ledger, []ledger.Key{delivered.Key, {Kind: ledger.Payment, ID: "DemoShop_404"}}}
	s.runSweep(t)
	if s.Ledger.WriteCount() != 0 || len(s.MerchantServer.Received("")) != 0 || len(s.Operator.Lookups()) != 0 {
		t.Errorf("%d writes", s.Ledger.WriteCount())
	}
}

// laggingQueue is an index that still shows what is not due.
type laggingQueue struct {
	ledger.DueQueue
	keys []ledger.Key
}

func (l laggingQueue) DueKeys(_ context.Context, shard int, _ time.Time, _ int) ([]ledger.Key, error) {
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
func TestDeadMerchantServerDoesNotBlockOthers(t *testing.T) {
	s := newFixture(t)
	dead := s.MerchantServer.URL + "/dead/"
	s.HealthStore.StoreHealth(webhook.Health{Endpoint: webhook.Endpoint{MerchantID: "demo0001", URL: dead}, Version: 1, Failures: 5})
	release := make(chan struct{})
	var backlog []*ledger.Entry
	for i := range 60 { // each has a URL of its own
		s.MerchantServer.RespondFunc(fmt.Sprint("/dead/", i), func(w http.ResponseWriter, _ *http.Request) {
			<-release
			w.WriteHeader(500)
		})
		backlog = append(backlog, s.StoreDueNotification(fmt.Sprint("DemoShop_", i), func(e *ledger.Entry) {
			e.NotifyURL = dead + fmt.Sprint(i)
			e.CreatedAt = e.CreatedAt.Add(-time.Hour)
		}))
	}
	s.Clock.Advance(time.Second)
	other := s.StoreDueNotification("OtherShop_1000", func(e *ledger.Entry) { e.MerchantID = "othr0002" })
	s.runWhileHanging(t, other, release)
	tried, put := 0, 0
	for _, e := range backlog {
		notification := s.MustHead(t, e)
		switch {
		case notification.Attempts == 1:
			tried++
		case notification.NextAttemptAt.Equal(s.Clock.Now().Add(5 * time.Minute)):
			put++
		}
	}
	if posts := len(s.MerchantServer.Received("")) - 1; tried == 0 || tried+put != len(backlog) || posts != tried {
		t.Errorf("%d tried, %d put off of %d; %d posts", tried, put, len(backlog), posts)
	}
	for i := range backlog {
		s.MerchantServer.RespondFunc(fmt.Sprint("/dead/", i), nil)
	}
	for range 4 {
		s.runSweepAfter(t, 6*time.Minute)
	}
	for _, e := range backlog {
		if len(s.MustGet(t, e).Delivered) != 1 {
			t.Errorf("%s is not told: %+v", e.ID, s.MustGet(t, e).Outbox)
		}
	}
}
