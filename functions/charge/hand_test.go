package charge_test

import (
	"testing"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
)

// judge settles the one charge by a person's word.
func judge(t *testing.T, w *operationtest.World, said string) {
	t.Helper()
	e := w.Only(t, ledger.Charge)
	judgement := ledger.Judgement{Word: ledger.Word{Said: said}, AnswerStatus: 400, AnswerBody: []byte(`{"requestError":{}}`)}
	if err := e.Judge(judgement, w.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	w.Ledger.Put(e)
}

// decision "unknown-by-hand".
func TestFoundAppliedByHand(t *testing.T) {
	unknown := func(t *testing.T) *operationtest.World {
		w := shop(t)
		w.Driver.Script(operationtest.LoseAnswer)
		w.Do(t, event(t)).Fails(t, 504, "SVC0001", "PDK_SMSW_0011")
		judge(t, w, ledger.WordApplied)
		return w
	}
	t.Run("decision unknown-by-hand: the same request makes the answer, and nothing is sent", func(t *testing.T) {
		w := unknown(t)
		first := w.Do(t, event(t))
		if first.Succeeds(t, 201); first.Header["Idempotent-Replayed"] != "true" || first.Text("amountTransaction.serverReferenceCode") != w.Only(t, ledger.Charge).ID {
			t.Errorf("%v %s", first.Header, first.Body)
		}
		if again := w.Do(t, other(t)); again.Status != 201 || again.Body != first.Body {
			t.Errorf("another body gets %d %s", again.Status, again.Body)
		}
		w.OneEffect(t, effect, 1)
	})
	t.Run("decision unknown-by-hand: of another request nobody could say what it was", func(t *testing.T) {
		w := unknown(t)
		w.Do(t, other(t)).Fails(t, 409, "SVC0005", "c-1001", correlator)
		w.Do(t, event(t)).Succeeds(t, 201)
		w.OneEffect(t, effect, 1)
	})
	t.Run("decision unknown-by-hand: an answer that cannot be stored is not given", func(t *testing.T) {
		w := unknown(t)
		failOnce(w, ledgermem.Replace, ledgermem.Error)
		w.Do(t, event(t)).Fails(t, 504, "SVC0001", "PDK_SMSW_0011")
		w.Do(t, event(t)).Succeeds(t, 201)
		w.OneEffect(t, effect, 1)
	})
	t.Run("decision unknown-by-hand: not applied is refused for good", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.Vanish)
		w.Do(t, event(t)).Fails(t, 504, "SVC0001", "PDK_SMSW_0011")
		judge(t, w, ledger.WordNotApplied)
		if answer := w.Do(t, event(t)); answer.Status != 400 || answer.Body != `{"requestError":{}}` || len(w.Driver.Calls()) != 1 {
			t.Errorf("%d %s", answer.Status, answer.Body)
		}
	})
}
