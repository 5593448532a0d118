package pay_test

import (
	"testing"

	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// callbackDuringCall is an operator that sends its callback before it responds to the call.
func callbackDuringCall(
	t testing.TB, w *operationtest.Fixture, status ledger.Status, behaviour operationtest.Behaviour,
) operationtest.Behaviour {
	t.Helper()
	return func(apply func()) operator.Result {
		e := w.OnlyEntry(t, ledger.Payment)
		report := ledger.StatusReport{Status: status, Source: "callback"}
		if e.ApplyFinalStatus(report, w.Clock.Now()) != ledger.Applied {
			t.Error("the callback was not applied")
		}
		e.Version, e.Writer = e.Version+1, "callback"
		w.Ledger.Overwrite(e)
		return behaviour(apply)
	}
}

// decision "pay-statuses": a final status that came first never changes, for every later response of the operator.
func TestCallbackBeforeResponse(t *testing.T) {
	cases := []struct {
		name, channel string
		status        ledger.Status
		behaviour     operationtest.Behaviour
		response      int
		repeat        int // the status of a retry; a terminal's response is known even if it is not stored
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
			w.Driver.SetBehaviours(callbackDuringCall(t, w, c.status, c.behaviour))
			w.Send(t, loadEvent(t, c.channel)).AssertStatus(t, c.response)
			e := w.OnlyEntry(t, ledger.Payment)
			if e.Status != c.status {
				t.Errorf("decision pay-statuses: status %s, want %s", e.Status, c.status)
			}
			if len(e.Outbox) != 1 || e.Outbox[0].Status != c.status {
				t.Errorf("decision pay-statuses: outbox %+v, want one notification of %s", e.Outbox, c.status)
			}
			w.Send(t, loadEvent(t, c.channel)).AssertStatus(t, c.repeat)
			if calls := len(w.Driver.Calls()); calls != 1 {
				t.Errorf("a payment with a final status was sent %d times", calls)
			}
		})
	}
}
