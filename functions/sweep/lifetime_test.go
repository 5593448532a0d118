package sweep_test

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// decision "pay-poll": the lifetime of a payment counts from its last reservation. A payment that is retried a day
// after a release, or after an unknown outcome, has its whole lifetime again.
func TestLifetimeOfResentPayment(t *testing.T) {
	for name, state := range map[string]ledger.State{"released": ledger.Released, "unknown": ledger.Unknown} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.Operator.SetStatus("pending")
			first := s.NewReservedPayment("DemoShop_1")
			first.Request.Channel = "web"
			first.ApplyOutcome("owner", ledger.CallOutcome{State: state}, ledger.Timestamp(s.Clock.Now()))
			s.StoreEntry(first)
			s.Clock.Advance(24*time.Hour - 2*time.Minute)
			retried, ctx := s.NewReservedPayment("DemoShop_1"), s.InvocationContext(t, timeout)
			retried.Request.Channel = "web"
			window := func(*ledger.Entry) time.Duration { return 24 * time.Hour }
			reservation, verdict, err := s.Book.Reserve(ctx, retried, window)
			if err != nil || verdict != ledger.TakenOver {
				t.Fatal(verdict, err)
			}
			_, err = s.Book.StoreOutcome(ctx, reservation, ledger.RecordSuccess, ledger.CallOutcome{
				State: ledger.Done, Status: ledger.Pending, ResponseStatus: 201, ResponseBody: []byte("{}"),
				FirstPollAt: s.Clock.Now().Add(time.Minute),
			})
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				s.runSweepAfter(t, time.Minute)
			}
			if e := s.MustGet(t, reservation); e.Status != ledger.Pending {
				t.Errorf("%s five minutes after the operator accepted it, want pending", e.Status)
			}
			s.runSweepAfter(t, 24*time.Hour)
			if e := s.MustGet(t, reservation); e.Status != ledger.Expired {
				t.Errorf("%s a day later, want expired", e.Status)
			}
		})
	}
}

// The first sweep that reads an expired message removes it from the due index. The table deletes it days later; until
// then it would precede all due entries.
func TestExpiredEntriesAreUnindexed(t *testing.T) {
	s := newFixture(t)
	message := s.NewMessage("m-1")
	message.ExpireAt = s.Clock.Now().Add(time.Hour)
	outcome := ledger.CallOutcome{State: ledger.Unknown, FirstPollAt: s.Clock.Now().Add(59 * time.Minute)}
	message.ApplyOutcome("owner", outcome, ledger.Timestamp(s.Clock.Now()))
	s.StoreEntry(message)
	s.runSweepAfter(t, 2*time.Hour)
	query := ledger.DueQuery{Shard: ledger.DueShard(message.Key), Before: s.Clock.Now(), Limit: 10}
	keys, _, err := s.Ledger.DueKeys(s.InvocationContext(t, timeout), query)
	if err != nil || len(keys) != 0 {
		t.Errorf("due keys %v, %v, want none", keys, err)
	}
	s.AssertReceived(t, 0)
}
