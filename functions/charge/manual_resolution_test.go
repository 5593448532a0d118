package charge_test

import (
	"testing"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/ledger"
)

// resolveManually resolves the one charge manually.
func resolveManually(t *testing.T, w *operationtest.Fixture, outcome string) {
	t.Helper()
	e := w.OnlyEntry(t, ledger.Charge)
	resolution := ledger.ManualOutcome{
		ManualResolution: ledger.ManualResolution{Outcome: outcome}, Owner: e.Owner,
		ResponseStatus: 400, ResponseBody: []byte(`{"requestError":{}}`),
	}
	if err := e.ResolveManually(resolution, w.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	w.Ledger.Overwrite(e)
}

// decision "unknown-by-hand".
func TestResolvedManuallyAsApplied(t *testing.T) {
	unknown := func(t *testing.T) *operationtest.Fixture {
		w := suite.LoseFirst(t)
		resolveManually(t, w, ledger.ManuallyApplied)
		return w
	}
	t.Run("decision unknown-by-hand: the retry creates the response, and nothing is sent", func(t *testing.T) {
		w := unknown(t)
		first := w.Send(t, newEvent(t))
		first.AssertStatus(t, 201)
		first.AssertHeader(t, "Idempotent-Replayed", "true")
		first.AssertText(t, "amountTransaction.serverReferenceCode", w.OnlyEntry(t, ledger.Charge).ID)
		if again := w.Send(t, otherBodyEvent(t)); again.Status != 201 || again.Body != first.Body {
			t.Errorf("another body gets %d %s, want the stored response", again.Status, again.Body)
		}
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
	t.Run("decision unknown-by-hand: another body creates no response", func(t *testing.T) {
		w := unknown(t)
		w.Send(t, otherBodyEvent(t)).AssertError(t, 409, "SVC0005", "c-1001", correlator)
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
	t.Run("decision unknown-by-hand: not applied is refused finally", func(t *testing.T) {
		w := newFixture(t).WithBehaviours(operationtest.LoseRequest)
		w.Send(t, newEvent(t)).AssertUnknown(t)
		resolveManually(t, w, ledger.ManuallyNotApplied)
		if response := w.Send(t, newEvent(t)).AssertStatus(t, 400); response.Body != `{"requestError":{}}` {
			t.Errorf("body %s, want the stored refusal", response.Body)
		}
		w.AssertOperatorCalls(t, 1)
	})
}
