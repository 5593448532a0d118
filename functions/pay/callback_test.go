package pay_test

import (
	"testing"

	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// reports is an operator whose callback comes before its own answer, which is then as the behaviour says.
func reports(t testing.TB, w *operationtest.World, status ledger.Status, then operationtest.Behaviour) operationtest.Behaviour {
	t.Helper()
	return func(apply func()) operator.Result {
		e := w.Only(t, ledger.Payment)
		if e.Resolve(ledger.Resolution{Status: status, Source: "callback"}, w.Clock.Now()) != ledger.Applied {
			t.Error("the callback was not applied")
		}
		e.Version, e.Writer = e.Version+1, "callback"
		w.Ledger.Put(e)
		return then(apply)
	}
}

// decision "pay-statuses": a final status that came first never changes, whatever the operator answers afterwards.
func TestCallbackBeforeAnswer(t *testing.T) {
	cases := []struct {
		name, channel string
		status        ledger.Status
		then          operationtest.Behaviour
		answer        int
		repeat        int // what the same request is answered then; without a stored answer a terminal's is known all the same
	}{
		{"success, then the page", "web", ledger.Successful, operationtest.Succeed, 201, 201},
		{"success, then pending", "ussd", ledger.Successful, operationtest.Succeed, 201, 201},
		{"success, then nothing", "ussd", ledger.Successful, operationtest.LoseAnswer, 201, 201},
		{"success, then nothing on the web", "web", ledger.Successful, operationtest.LoseAnswer, 504, 409},
		{"success, then a 503", "ussd", ledger.Successful, operationtest.Down, 504, 201},
		{"success, then a refusal", "ussd", ledger.Successful, operationtest.Refuse("POL1000"), 504, 201},
		{"failure, then a refusal", "ussd", ledger.Failed, operationtest.Refuse("POL1000"), 403, 403},
		{"failure, then pending", "ussd", ledger.Failed, operationtest.Succeed, 201, 201},
	}
	for _, c := range cases {
		t.Run("decision pay-statuses: "+c.name, func(t *testing.T) {
			w := shop(t)
			w.Driver.Script(reports(t, w, c.status, c.then))
			w.Do(t, load(t, c.channel)).Succeeds(t, c.answer)
			e := w.Only(t, ledger.Payment)
			if e.Status != c.status || len(e.Outbox) != 1 || e.Outbox[0].Status != c.status {
				t.Errorf("decision pay-statuses: status %s, outbox %+v", e.Status, e.Outbox)
			}
			w.Do(t, load(t, c.channel)).Succeeds(t, c.repeat)
			if calls := len(w.Driver.Calls()); calls != 1 {
				t.Errorf("a settled payment was sent %d times", calls)
			}
		})
	}
}
