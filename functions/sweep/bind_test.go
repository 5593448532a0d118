package sweep_test

import (
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// unboundMessage stores a sent SMS whose binding failed, and a receipt that came meanwhile.
func (s *sweepFixture) unboundMessage(t *testing.T) *ledger.Entry {
	t.Helper()
	e := &ledger.Entry{
		Key: ledger.Key{Kind: ledger.SMS, ID: "s1"}, Merchant: ledger.Merchant{ID: "demo0001", Name: "DemoShop"},
		Request:  ledger.Request{Fingerprint: "f"},
		Route:    ledger.Route{Country: "CI", Operator: "orange", Account: "orange-sms/s", UpstreamKey: "s1"},
		Call:     ledger.Call{LeaseUntil: s.Clock.Now().Add(25 * time.Second)},
		ExpireAt: s.Clock.Now().Add(48 * time.Hour),
	}
	now := ledger.Timestamp(s.Clock.Now())
	e.BeginReservation("owner", now)
	e.ApplyOutcome("owner", ledger.CallOutcome{
		State: ledger.Done, Status: ledger.MessageWaiting, ResponseStatus: 201, OperatorReference: "their-id",
		BindAt: now.Add(ledger.FirstBindWait),
	}, now)
	e = s.StoreEntry(e)
	statuses := []ledger.Status{ledger.DeliveredToTerminal}
	_, _, err := s.Ledger.FindMessage(t.Context(), e.Route.Account, e.OperatorReference, statuses, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// decision "static-callbacks": the sweep binds a message that the send could not bind, and applies its receipts.
func TestBind(t *testing.T) {
	s := newFixture(t)
	e := s.unboundMessage(t)
	s.runSweepAfter(t, ledger.FirstBindWait-time.Second)
	if stored := s.MustGet(t, e); stored.Status != ledger.MessageWaiting {
		t.Errorf("status %s before the time", stored.Status)
	}
	s.Ledger.FailNext(storetest.BindMessage, storetest.FailedBeforeApply)
	s.runSweepAfter(t, time.Second)
	failed := s.MustGet(t, e)
	if failed.Status != ledger.MessageWaiting || !failed.BindAt.After(s.Clock.Now()) {
		t.Errorf("status %s, bound again at %s after a failure", failed.Status, failed.BindAt)
	}
	s.runSweepAfter(t, failed.BindAt.Sub(s.Clock.Now()))
	if stored := s.MustGet(t, e); stored.Status != ledger.DeliveredToTerminal || !stored.BindAt.IsZero() {
		t.Errorf("status %s, bound again at %s", stored.Status, stored.BindAt)
	}
	next := []ledger.Status{ledger.DeliveredToNetwork}
	id, _, err := s.Ledger.FindMessage(t.Context(), e.Route.Account, e.OperatorReference, next, time.Time{})
	if id != e.ID || err != nil {
		t.Errorf("the operator's id finds %q, %v", id, err)
	}
}
