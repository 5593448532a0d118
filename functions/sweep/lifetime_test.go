package sweep_test

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// decision "pay-poll": the lifetime of a payment counts from its last reservation. One that was released, or unknown, and
// accepted a day later when its merchant sent it again has its whole day before it.
func TestLifetimeOfResentPayment(t *testing.T) {
	for name, state := range map[string]ledger.State{"released": ledger.Released, "unknown": ledger.Unknown} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.Operator.SetStatus("pending")
			first := s.NewReservedPayment("DemoShop_1")
			first.Channel, first.Fingerprint = "web", "f"
			first.ApplyOutcome("owner", ledger.CallOutcome{State: state}, ledger.Timestamp(s.Clock.Now()))
			s.StoreEntry(first)
			s.Clock.Advance(24*time.Hour - 2*time.Minute)
			resent := s.NewReservedPayment("DemoShop_1")
			resent.Channel, resent.Fingerprint = "web", "f"
			resent.LeaseUntil = s.Clock.Now().Add(25 * time.Second)
			reservation, verdict, err := s.Book.Reserve(s.InvocationContext(t, timeout), resent, func(string) time.Duration { return 24 * time.Hour })
			if err != nil || verdict != ledger.TakenOver {
				t.Fatal(verdict, err)
			}
			_, err = s.Book.StoreOutcome(s.InvocationContext(t, timeout), reservation, ledger.CallOutcome{
				State: ledger.Done, Status: ledger.Pending, ResponseStatus: 201, ResponseBody: []byte("{}"), FirstPollAt: s.Clock.Now().Add(time.Minute),
			})
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				s.runSweepAfter(t, time.Minute)
			}
			if e := s.MustGet(t, reservation); e.Status != ledger.Pending {
				t.Errorf("%s some minutes after the operator accepted it", e.Status)
			}
			s.runSweepAfter(t, 24*time.Hour)
			if e := s.MustGet(t, reservation); e.Status != ledger.Expired {
				t.Errorf("%s a day later", e.Status)
			}
		})
	}
}

// An expired message leaves the due index the first time that it is met: the table deletes it days later, and until then
// it would stand before everything that is due.
func TestExpiredEntriesAreUnindexed(t *testing.T) {
	s := newFixture(t)
	message := s.NewMessage("m-1")
	message.ExpireAt = s.Clock.Now().Add(time.Hour)
	message.ApplyOutcome("owner", ledger.CallOutcome{State: ledger.Unknown, FirstPollAt: s.Clock.Now().Add(59 * time.Minute)}, ledger.Timestamp(s.Clock.Now()))
	s.StoreEntry(message)
	s.runSweepAfter(t, 2*time.Hour)
	keys, err := s.Ledger.DueKeys(s.InvocationContext(t, timeout), ledger.DueShard(message.Key), s.Clock.Now(), 10)
	if err != nil || len(keys) != 0 {
		t.Errorf("still due: %v %v", keys, err)
	}
	if len(s.MerchantServer.Received("")) != 0 {
		t.Error("an expired message was told")
	}
}
