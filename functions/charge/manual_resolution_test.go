package charge_test

import (
	"testing"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
)

// resolveManually settles the one charge by a person's word.
func resolveManually(t *testing.T, w *operationtest.Fixture, resolutionText string) {
	t.Helper()
	e := w.OnlyEntry(t, ledger.Charge)
	resolution := ledger.ManualOutcome{ManualResolution: ledger.ManualResolution{Outcome: resolutionText}, ResponseStatus: 400, ResponseBody: []byte(`{"requestError":{}}`)}
	if err := e.ResolveManually(resolution, w.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	w.Ledger.Overwrite(e)
}

// decision "unknown-by-hand".
func TestResolvedManuallyAsApplied(t *testing.T) {
	unknown := func(t *testing.T) *operationtest.Fixture {
		w := newFixture(t)
		w.Driver.SetBehaviours(operationtest.LoseResponse)
		w.Send(t, newEvent(t)).AssertUnknown(t)
		resolveManually(t, w, ledger.ManuallyApplied)
		return w
	}
	t.Run("decision unknown-by-hand: the same request makes the answer, and nothing is sent", func(t *testing.T) {
		w := unknown(t)
		first := w.Send(t, newEvent(t))
		if first.AssertStatus(t, 201); first.Header["Idempotent-Replayed"] != "true" || first.Text("amountTransaction.serverReferenceCode") != w.OnlyEntry(t, ledger.Charge).ID {
			t.Errorf("%v %s", first.Header, first.Body)
		}
		if again := w.Send(t, otherBodyEvent(t)); again.Status != 201 || again.Body != first.Body {
			t.Errorf("another body gets %d %s", again.Status, again.Body)
		}
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
	t.Run("decision unknown-by-hand: of another request nobody could say what it was", func(t *testing.T) {
		w := unknown(t)
		w.Send(t, otherBodyEvent(t)).AssertError(t, 409, "SVC0005", "c-1001", correlator)
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
	t.Run("decision unknown-by-hand: an answer that cannot be stored is not given", func(t *testing.T) {
		w := unknown(t)
		w.FailNextStoreCall(ledgermem.Replace, ledgermem.FailedBeforeApply)
		w.Send(t, newEvent(t)).AssertUnknown(t)
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
	t.Run("decision unknown-by-hand: not applied is refused for good", func(t *testing.T) {
		w := newFixture(t)
		w.Driver.SetBehaviours(operationtest.LoseRequest)
		w.Send(t, newEvent(t)).AssertUnknown(t)
		resolveManually(t, w, ledger.ManuallyNotApplied)
		if response := w.Send(t, newEvent(t)); response.Status != 400 || response.Body != `{"requestError":{}}` || len(w.Driver.Calls()) != 1 {
			t.Errorf("%d %s", response.Status, response.Body)
		}
	})
}
