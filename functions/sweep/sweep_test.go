package sweep_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// Without due entries a sweep makes one query for each shard and nothing else, for any number of final entries.
func TestNothingDue(t *testing.T) {
	many := 100_000
	if testing.Short() {
		many = 1_000
	}
	for _, final := range []int{0, 10, many} {
		t.Run(fmt.Sprint(final, " final"), func(t *testing.T) {
			s := newFixture(t)
			for i := range final {
				e := s.NewReservedPayment(fmt.Sprint("DemoShop_", i))
				e.State, e.Status = ledger.Done, ledger.Successful
				s.StoreEntry(e)
			}
			s.runSweepAfter(t, time.Hour)
			if queries := s.Ledger.CallCount(storetest.DueKeys); queries != ledger.DueShards {
				t.Errorf("%d queries, want %d", queries, ledger.DueShards)
			}
			s.assertIdle(t)
			if lines := s.LogLines.LineCount(); lines != 0 {
				t.Errorf("%d log lines, want none", lines)
			}
		})
	}
}

// assertIdle checks that the sweep neither read nor changed an entry, and called no other system.
func (s *sweepFixture) assertIdle(t *testing.T) {
	t.Helper()
	got := map[string]int{
		"entries read": s.Ledger.CallCount(storetest.Get), "entries written": s.Ledger.WriteCount(),
		"notifications": len(s.MerchantServer.Received("")), "lookups": len(s.Operator.Lookups()),
		"health writes": s.HealthStore.WriteCount(), "profile reads": int(s.ProfileStore.Reads.Load()),
	}
	for what, count := range got {
		if count != 0 {
			t.Errorf("%s: %d, want none", what, count)
		}
	}
}

// Reservations with a lapsed lease (decision "leases").
func TestLapsedLease(t *testing.T) {
	t.Run("a payment is looked up at once", func(t *testing.T) {
		s := newFixture(t)
		s.Operator.SetStatus("Successful")
		e := s.StoreEntry(s.NewReservedPayment("DemoShop_1"))
		s.runSweepAfter(t, 24*time.Second+ledger.LapseMargin)
		s.assertIdle(t)
		s.runSweepAfter(t, time.Second)
		if after := s.AssertEntry(t, e, finalSummary(ledger.Successful)); !after.EverUnknown {
			t.Error("EverUnknown is not set")
		}
		s.AssertMetric(t, "UnknownOutcomes", 1)
		if !strings.Contains(s.LogLines.String(), `"Stack":"`+stack+`","Operation":"sweep"`) {
			t.Errorf("the line does not name the stack: %s", s.LogLines)
		}
	})
	t.Run("a payment with a final status from a callback is done", func(t *testing.T) {
		s := newFixture(t)
		e := s.StoreEntry(s.NewReservedPayment("DemoShop_1"), func(e *ledger.Entry) {
			e.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Failed, Source: "callback"}, s.Clock.Now())
		})
		s.runSweepAfter(t, 25*time.Second+ledger.LapseMargin)
		s.AssertEntry(t, e, deliveredFailure)
		s.AssertMetric(t, "UnknownOutcomes", 0)
		s.AssertLookups(t, 0)
	})
	for _, kind := range []ledger.Kind{ledger.Charge, ledger.SMS} {
		t.Run(string(kind)+": unknown, listed after 15 minutes and then hourly", func(t *testing.T) {
			s := newFixture(t)
			e := s.NewMessage("m-1")
			e.Kind = kind
			s.StoreEntry(e)
			s.runSweepAfter(t, 25*time.Second+ledger.LapseMargin)
			s.AssertEntry(t, e, summary{State: ledger.Unknown, Due: true})
			s.AssertMetric(t, "StaleUnknownOutcomes", 0)
			for listed, wait := range []time.Duration{ledger.StaleAfter, time.Hour, time.Hour} {
				assertWait(t, s.advanceUntilDue(t, e), wait)
				s.AssertMetric(t, "StaleUnknownOutcomes", listed+1)
			}
			s.AssertEntry(t, e, summary{State: ledger.Unknown, Due: true})
		})
	}
	t.Run("an unknown charge is listed 15 minutes after its outcome", func(t *testing.T) {
		s := newFixture(t)
		charge := s.NewMessage("c-1")
		charge.Kind = ledger.Charge
		e := s.StoreUnknown(charge)
		s.runSweepAfter(t, 15*time.Minute-time.Second)
		s.assertIdle(t)
		s.runSweepAfter(t, time.Second)
		s.AssertMetric(t, "StaleUnknownOutcomes", 1)
		s.AssertEntry(t, e, summary{State: ledger.Unknown, Due: true})
	})
}

// Concurrent sweeps make each lookup, post and SMS once, because a write claims it.
func TestConcurrentSweeps(t *testing.T) {
	s := newFixture(t)
	const entries = 12
	s.Operator.SetStatus("Failed")
	var due, pending []*ledger.Entry
	for i := range entries {
		due = append(due, s.StoreDueNotification(fmt.Sprint("DemoShop_", i)))
		pollDue := func(e *ledger.Entry) { e.Poll.At = e.CreatedAt }
		pending = append(pending, s.StorePendingPayment(fmt.Sprint("DemoShop_", 100+i), pollDue))
	}
	sms := s.StoreFinalPayment("DemoShop_500", ledger.Successful, func(e *ledger.Entry) { e.UserSMS.At = e.CreatedAt })
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { s.runSweep(t) })
	}
	group.Wait()
	s.AssertReceived(t, entries)
	if lookups, sent := len(s.Operator.Lookups()), len(s.Operator.UserSMSCalls()); lookups != entries || sent != 1 {
		t.Errorf("%d lookups and %d SMS, want %d and 1", lookups, sent, entries)
	}
	for _, e := range due {
		s.AssertEntry(t, e, deliveredFailure)
	}
	for _, e := range pending {
		s.AssertEntry(t, e, finalSummary(ledger.Failed))
	}
	want := finalSummary(ledger.Successful)
	want.UserSMS = ledger.UserSMSSent
	s.AssertEntry(t, sms, want)
}

// Four sweeps divide the shards of a minute, and each delivers the entries of its own shards. If one of them does not
// run, another one delivers its entries a minute later.
func TestPartsOfAMinute(t *testing.T) {
	const entries = 40
	newFixtureWithDue := func() *sweepFixture {
		s := newFixture(t)
		for i := range entries {
			s.StoreDueNotification(fmt.Sprint("DemoShop_", i))
		}
		return s
	}
	sweepPart := func(s *sweepFixture, number int) {
		event := fmt.Appendf(nil, `{"part":%d,"of":4}`, number)
		if _, err := s.sweep.Invoke(s.InvocationContext(t, timeout), event); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("all four", func(t *testing.T) {
		s := newFixtureWithDue()
		for number := range 4 {
			sweepPart(s, number)
			if received := len(s.MerchantServer.Received("")); number < 3 && received == entries {
				t.Errorf("the first %d sweeps delivered all %d", number+1, entries)
			}
		}
		s.AssertReceived(t, entries)
	})
	t.Run("only one runs", func(t *testing.T) {
		s := newFixtureWithDue()
		sweepPart(s, 2)
		s.Clock.Advance(time.Minute + time.Second)
		sweepPart(s, 2)
		s.AssertReceived(t, entries)
	})
}

// No step starts in the last 20 seconds of the invocation; later sweeps do the rest.
func TestInvocationDeadline(t *testing.T) {
	s := newFixture(t)
	var entries []*ledger.Entry
	for i := range 200 {
		entries = append(entries, s.StoreDueNotification(fmt.Sprint("DemoShop_", i)))
	}
	s.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) { s.Clock.Advance(time.Second) })
	s.runSweep(t)
	posts := len(s.MerchantServer.Received(""))
	if posts == 0 || posts > 40+64 {
		t.Errorf("%d posts of a second each in a minute, want at most 104", posts)
	}
	s.MerchantServer.RespondFunc("/demo", nil)
	for range 3 { // by this clock the server was slow, so some were postponed
		s.runSweepAfter(t, 5*deliverytest.SweepInterval)
	}
	s.AssertDelivered(t, entries...)
	s.AssertReceived(t, len(entries))
	t.Run("without time left no step starts", func(t *testing.T) {
		s := newFixture(t)
		s.StoreDueNotification("DemoShop_1")
		if _, err := s.sweep.Invoke(s.InvocationContext(t, 19*time.Second), nil); err != nil {
			t.Fatal(err)
		}
		s.assertIdle(t)
	})
}

// A failing read or write, a panic of the driver, or a merchant without secrets does not affect other entries.
func TestBrokenEntryDoesNotBlockOthers(t *testing.T) {
	brokenEntry := ledger.Key{Kind: ledger.Payment, ID: "DemoShop_666"}
	failCalls := func(s *sweepFixture, operation storetest.Operation) {
		s.Ledger.InjectFaults(func(call storetest.Call) storetest.Fault {
			if call.Operation == operation && call.Key == brokenEntry {
				return storetest.FailedBeforeApply
			}
			return storetest.NoFault
		})
	}
	cases := []struct {
		name string
		fail func(*sweepFixture)
	}{
		{"a failing read", func(s *sweepFixture) {
			failCalls(s, storetest.Get)
		}},
		{"a failing write", func(s *sweepFixture) {
			failCalls(s, storetest.Replace)
		}},
		{"a panic of the driver", func(s *sweepFixture) {
			s.Operator.LookupFunc = func(operator.StatusCall) operator.StatusResponse { panic("canary") }
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t)
			s.StorePendingPayment(brokenEntry.ID, func(e *ledger.Entry) { e.Poll.At = e.CreatedAt })
			c.fail(s)
			var others []*ledger.Entry
			for i := range 40 {
				others = append(others, s.StoreDueNotification(fmt.Sprint("DemoShop_", i)))
			}
			s.runSweep(t)
			s.AssertDelivered(t, others...)
			if lines := s.LogLines.LineCount(); lines != 41 {
				t.Errorf("%d log lines for 41 entries", lines)
			}
			if causes := strings.Count(s.LogLines.String(), `"Cause"`); causes != 1 {
				t.Errorf("%d lines name a cause, want only that of the broken entry: %s", causes, s.LogLines)
			}
		})
	}
	t.Run("a merchant without secrets: no attempt is counted, and the payer gets the SMS", func(t *testing.T) {
		s := newFixture(t)
		e := s.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) {
			e.Outbox.Waiting[0].NextAttemptAt, e.UserSMS.At = e.CreatedAt, e.CreatedAt
		})
		s.ProfileStore.Missing = true
		for range 20 {
			s.runSweepAfter(t, time.Minute)
		}
		want := finalSummary(ledger.Successful)
		want.UserSMS = ledger.UserSMSSent
		if attempts := s.AssertEntry(t, e, want).Outbox.Head().Attempts; attempts != 0 {
			t.Errorf("%d attempts counted, want none", attempts)
		}
		s.AssertReceived(t, 0)
		if age := s.LogLines.MaxMetric("StalledMillis"); age < 15*60_000 {
			t.Errorf("the longest stall is %d ms, want at least 15 minutes", age)
		}
		s.ProfileStore.Missing = false
		if wait := s.advanceUntilDue(t, e); wait > 5*time.Minute {
			t.Errorf("postponed by %s, want 5 minutes at most", wait)
		}
		s.AssertDelivered(t, e)
	})
}

// A shard that cannot be read fails the invocation; the next sweep processes it.
func TestShardReadFailure(t *testing.T) {
	s := newFixture(t)
	e := s.StoreDueNotification("DemoShop_1")
	s.Ledger.FailNext(storetest.DueKeys, storetest.FailedBeforeApply)
	if _, err := s.sweep.Invoke(s.InvocationContext(t, timeout), nil); err == nil {
		t.Error("the failed query is not an error")
	}
	s.runSweep(t)
	s.AssertDelivered(t, e)
}

// The index lags: an entry that is no longer due is not processed.
func TestStaleIndex(t *testing.T) {
	s := newFixture(t)
	delivered := s.StoreFinalPayment("DemoShop_1", ledger.Failed)
	delivered.Outbox.MarkDelivered(delivered.Outbox.Head().ID, s.Clock.Now())
	s.StoreEntry(delivered)
	s.sweep.Queue = laggingQueue{s.Ledger, []ledger.Key{delivered.Key, {Kind: ledger.Payment, ID: "DemoShop_404"}}}
	s.runSweep(t)
	s.AssertReceived(t, 0)
	if writes, lookups := s.Ledger.WriteCount(), len(s.Operator.Lookups()); writes != 0 || lookups != 0 {
		t.Errorf("%d writes and %d lookups, want none", writes, lookups)
	}
}

// laggingQueue is an index that still has keys of entries that are not due.
type laggingQueue struct {
	ledger.DueQueue
	keys []ledger.Key
}

func (l laggingQueue) DueKeys(_ context.Context, query ledger.DueQuery) (page []ledger.DueKey, _ string, _ error) {
	for _, key := range l.keys {
		if ledger.DueShard(key) == query.Shard {
			page = append(page, ledger.DueKey{Key: key})
		}
	}
	return page, "", nil
}
