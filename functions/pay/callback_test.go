package pay_test

import (
	"testing"

	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// callbackDuringCall is an operator whose callback comes before its own answer, which is then as the behaviour says.
func callbackDuringCall(t testing.TB, w *operationtest.Fixture, status ledger.Status, behaviour operationtest.Behaviour) operationtest.Behaviour {
	t.Helper()
	return func(apply func()) operator.Result {
		e := w.OnlyEntry(t, ledger.Payment)
		if e.ApplyFinalStatus(ledger.StatusReport{Status: status, Source: "callback"}, w.Clock.Now()) != ledger.Applied {
			t.Error("the callback was not applied")
		}
		e.Version, e.Writer = e.Version+1, "callback"
		w.Ledger.Overwrite(e)
		return behaviour(apply)
	}
}

// decision "pay-statuses": a final status that came first never changes, whatever the operator answers afterwards.
func TestCallbackBeforeResponse(t *testing.T) {
	cases := []struct {
		name, channel string
		status        ledger.Status
		then          operationtest.Behaviour
		answer        int
		repeat        int // what the same request is answered then; without a stored answer a terminal's is known all the same
	}{
		{"success, then the page", "web", ledger.Successful, operationtest.Succeed, 201, 201},
		{"success, then pending", "ussd", ledger.Successful, operationtest.Succeed, 201, 201},
		{"success, then nothing", "ussd", ledger.Successful, operationtest.LoseResponse, 201, 201},
		{"success, then nothing on the web", "web", ledger.Successful, operationtest.LoseResponse, 504, 409},
		{"success, then a 503", "ussd", ledger.Successful, operationtest.RespondUnavailable, 504, 201},
		{"success, then a refusal", "ussd", ledger.Successful, operationtest.RefuseFinally("POL1000"), 504, 201},
		{"failure, then a refusal", "ussd", ledger.Failed, operationtest.RefuseFinally("POL1000"), 403, 403},
		{"failure, then pending", "ussd", ledger.Failed, operationtest.Succeed, 201, 201},
	}
	for _, c := range cases {
		t.Run("decision pay-statuses: "+c.name, func(t *testing.T) {
			w := newFixture(t)
			w.Driver.SetBehaviours(callbackDuringCall(t, w, c.status, c.then))
			w.Send(t, loadEvent(t, c.channel)).AssertStatus(t, c.answer)
			e := w.OnlyEntry(t, ledger.Payment)
			if e.Status != c.status || len(e.Outbox) != 1 || e.Outbox[0].Status != c.status {
				t.Errorf("decision pay-statuses: status %s, outbox %+v", e.Status, e.Outbox)
			}
			w.Send(t, loadEvent(t, c.channel)).AssertStatus(t, c.repeat)
			if calls := len(w.Driver.Calls()); calls != 1 {
				t.Errorf("a settled payment was sent %d times", calls)
			}
		})
	}
}
