package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// reserveExisting reserves the key of a payment for a request that nothing may serve for the first time.
func (b *bench) reserveExisting(fingerprint string) (*ledger.Entry, ledger.Verdict, error) {
	e := b.request(ledger.Payment, fingerprint)
	e.Route.Operator, e.Route.Account = "", "" // no platform was selected
	return b.ReserveExisting(context.Background(), e, anHour)
}

// decision "routes": a key that has an entry gets what Reserve returns for it. A key without one is not reserved. While
// nothing can be sent, FindExisting finds the same, except what would be sent again.
func TestReserveExisting(t *testing.T) {
	stored := func(outcomes ...ledger.CallOutcome) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) {
			e := b.reserve(t, ledger.Payment, "f", ledger.NewReservation)
			for _, o := range outcomes {
				b.storeOutcome(t, e, o)
			}
			b.wait(time.Minute)
		}
	}
	for _, c := range []struct {
		name    string
		before  func(*testing.T, *bench)
		body    string
		found   ledger.Verdict // of FindExisting; 0 for no entry
		verdict ledger.Verdict
		state   ledger.State // "" for no entry
	}{
		{"no entry", func(*testing.T, *bench) {}, "f", 0, 0, ""},
		{"released without its body", stored(unbound), "f", 0, 0, ""},
		{"released", stored(released), "f", 0, ledger.TakenOver, ledger.Reserved},
		{"released, another body", stored(released), "g", ledger.KeyTaken, ledger.KeyTaken, ledger.Released},
		{"a stored response", stored(done), "f", ledger.StoredResponse, ledger.StoredResponse, ledger.Done},
		{"a stored response, another body", stored(done), "g", ledger.KeyTaken, ledger.KeyTaken, ledger.Done},
		{"unknown", stored(unknown), "f", ledger.StillUnknown, ledger.TakenOver, ledger.Reserved},
		{"a lapsed reservation", stored(), "f", ledger.StillUnknown, ledger.TakenOver, ledger.Reserved},
		{"in flight", func(t *testing.T, b *bench) {
			b.reserve(t, ledger.Payment, "f", ledger.NewReservation)
		}, "f", ledger.InFlight, ledger.InFlight, ledger.Reserved},
		{"unknown, after the window", func(t *testing.T, b *bench) {
			stored(unknown)(t, b)
			b.wait(time.Hour)
		}, "f", ledger.StillUnknown, ledger.StillUnknown, ledger.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			c.before(t, b)
			found, verdict, err := b.FindExisting(t.Context(), b.request(ledger.Payment, c.body), anHour)
			if err != nil || (found == nil) != (c.found == 0) || verdict != c.found {
				t.Errorf("found %v, %v, %v; want %v", found, verdict, err, c.found)
			}
			inserts := b.store.CallCount(storetest.Insert)
			e, verdict, err := b.reserveExisting(c.body)
			if err != nil || (e == nil) != (c.state == "") || verdict != c.verdict {
				t.Fatalf("%v, %v, %v; want %v", e, verdict, err, c.verdict)
			}
			if e != nil && (e.State != c.state || e.Route.Operator != "sandbox") {
				t.Errorf("state %s, operator %q; want %s and the first one's operator", e.State, e.Route.Operator,
					c.state)
			}
			if got := b.store.CallCount(storetest.Insert) - inserts; got != 0 {
				t.Errorf("%d inserts, want none", got)
			}
		})
	}
}

// Another attempt may release the entry without its body, between the read and the takeover. Nothing may be sent then.
func TestReserveExistingLosesItsEntry(t *testing.T) {
	b := newBench(t)
	b.storeOutcome(t, b.reserve(t, ledger.Payment, "f", ledger.NewReservation), unknown)
	b.store.SetCrashPoint("before Replace", func() {
		other := b.reserve(t, ledger.Payment, "f", ledger.TakenOver)
		b.storeOutcome(t, other, unbound)
	})
	e, verdict, err := b.reserveExisting("f")
	if e != nil || err != nil {
		t.Fatalf("%+v, %v, %v; want no entry", e, verdict, err)
	}
	if stored := b.store.All()[0]; stored.State != ledger.Released || stored.Request.Fingerprint != "" {
		t.Errorf("stored %s", summary(stored))
	}
}

func TestReserveExistingFails(t *testing.T) {
	for name, operation := range map[string]storetest.Operation{
		"the read": storetest.Get, "the takeover": storetest.Replace,
	} {
		b := newBench(t)
		b.storeOutcome(t, b.reserve(t, ledger.Payment, "f", ledger.NewReservation), released)
		b.store.FailNext(operation, failed)
		if e, _, err := b.reserveExisting("f"); e != nil || !errors.Is(err, storetest.ErrInjected) {
			t.Errorf("%s fails: %v, %v", name, e, err)
		}
	}
	b := newBench(t)
	b.reserve(t, ledger.Payment, "f", ledger.NewReservation)
	b.Rand = failing{}
	if _, _, err := b.reserveExisting("f"); err == nil {
		t.Error("no random token, and no error")
	}
}

// MayTakeOver refuses a takeover before its write. A first reservation does not call it.
func TestMayTakeOver(t *testing.T) {
	refusal := errors.New("not now")
	b := newBench(t)
	b.MayTakeOver = func(next *ledger.Entry) error {
		if next.State != ledger.Reserved {
			t.Errorf("called with %s", summary(next))
		}
		return refusal
	}
	b.storeOutcome(t, b.reserve(t, ledger.Payment, "f", ledger.NewReservation), released)
	version := b.store.All()[0].Version
	if e, _, err := b.reserveExisting("f"); e != nil || !errors.Is(err, refusal) {
		t.Errorf("%v, %v; want the refusal", e, err)
	}
	if stored := b.store.All()[0]; stored.Version != version {
		t.Errorf("stored %s", summary(stored))
	}
}
