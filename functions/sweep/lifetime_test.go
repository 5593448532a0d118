package sweep_test

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// decision "pay-poll": the lifetime of a payment counts from its last reservation. One that was released, or unknown, and
// accepted a day later when its merchant sent it again has its whole day before it.
func TestLifetimeOfAPaymentSentAgain(t *testing.T) {
	for name, state := range map[string]ledger.State{"released": ledger.Released, "unknown": ledger.Unknown} {
		t.Run(name, func(t *testing.T) {
			s := kit(t)
			s.Operator.Says("pending")
			first := s.Reserved("DemoShop_1")
			first.Channel, first.Fingerprint = "web", "f"
			first.Settle("owner", ledger.Settlement{State: state}, ledger.Moment(s.Clock.Now()))
			s.Store(first)
			s.Clock.Advance(24*time.Hour - 2*time.Minute)
			again := s.Reserved("DemoShop_1")
			again.Channel, again.Fingerprint = "web", "f"
			again.LeaseUntil = s.Clock.Now().Add(25 * time.Second)
			held, verdict, err := s.Book.Hold(s.Context(t, timeout), again, func(string) time.Duration { return 24 * time.Hour })
			if err != nil || verdict != ledger.Retaken {
				t.Fatal(verdict, err)
			}
			_, err = s.Book.Settle(s.Context(t, timeout), held, ledger.Settlement{
				State: ledger.Done, Status: ledger.Pending, AnswerStatus: 201, AnswerBody: []byte("{}"), Due: s.Clock.Now().Add(time.Minute),
			})
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				s.after(t, time.Minute)
			}
			if e := s.Get(t, held); e.Status != ledger.Pending {
				t.Errorf("%s some minutes after the operator accepted it", e.Status)
			}
			s.after(t, 24*time.Hour)
			if e := s.Get(t, held); e.Status != ledger.Expired {
				t.Errorf("%s a day later", e.Status)
			}
		})
	}
}

// An expired message leaves the due index the first time that it is met: the table deletes it days later, and until then
// it would stand before everything that is due.
func TestExpiredEntriesLeaveTheIndex(t *testing.T) {
	s := kit(t)
	message := s.NewMessage("m-1")
	message.ExpireAt = s.Clock.Now().Add(time.Hour)
	message.Settle("owner", ledger.Settlement{State: ledger.Unknown, Due: s.Clock.Now().Add(59 * time.Minute)}, ledger.Moment(s.Clock.Now()))
	s.Store(message)
	s.after(t, 2*time.Hour)
	keys, err := s.Ledger.DueKeys(s.Context(t, timeout), ledger.DueShard(message.Key), s.Clock.Now(), 10)
	if err != nil || len(keys) != 0 {
		t.Errorf("still due: %v %v", keys, err)
	}
	if len(s.Shop.Posts("")) != 0 {
		t.Error("an expired message was told")
	}
}
