package operationtest

import (
	"context"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// CheckRestored sends the golden request and another body under a key that a restore of the ledger lost, and that was
// stored after it. Both get a status, and nothing is sent, also after a day (decision "restored").
func (s Suite) CheckRestored(t *testing.T, status int) {
	t.Helper()
	before, _ := s.SendFirst(t)
	first := before.OnlyEntry(t, s.Kind)
	lost := &ledger.Entry{
		Key: first.Key, Merchant: first.Merchant, Route: first.Route, CreatedAt: first.CreatedAt,
		Request: ledger.Request{Correlator: first.Request.Correlator, Channel: first.Request.Channel},
	}
	w := s.NewFixture(t)
	_, stored, err := w.Pipeline.Book.Restore(context.Background(), lost, ledger.RestoreLost)
	if err != nil || !stored {
		t.Fatalf("Restore = %v, %v", stored, err)
	}
	for _, wait := range []time.Duration{0, time.Hour, 24 * time.Hour} {
		w.Clock.Advance(wait)
		for name, e := range map[string]*Event{"the same request": s.NewEvent(t), "another body": s.OtherEvent(t)} {
			t.Run("decision restored: "+name, func(t *testing.T) {
				w.Send(t, e).AssertStatus(t, status)
				w.AssertOperatorCalls(t, 0)
				w.AssertState(t, s.Kind, ledger.Unknown)
			})
		}
	}
}
