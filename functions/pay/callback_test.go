package pay_test

import (
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
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

// The first attempt's outcome is stored after a repeat got its response: later repeats get the same one. The operator's
// reference is in the body, so a response that is not stored could change.
func TestRepeatBeforeOutcomeIsStored(t *testing.T) {
	w := newFixture(t)
	report := ledger.StatusReport{Status: ledger.Successful, Source: "callback", OperatorReference: "ext-1"}
	w.Driver.SetBehaviours(operationtest.LoseResponse)
	w.FailEvery(storetest.Replace)
	w.Send(t, ussdEvent(t)).AssertUnknown(t)
	w.FailEvery()
	reservation := w.OnlyEntry(t, ledger.Payment)
	w.Clock.Advance(reservation.LeaseUntil.Sub(w.Clock.Now()) + time.Second)
	e := reservation.Clone()
	e.ApplyFinalStatus(report, w.Clock.Now())
	e.Version, e.Writer = e.Version+1, "callback"
	w.Ledger.Overwrite(e)
	first := w.Send(t, ussdEvent(t)).AssertStatus(t, 201)
	late := w.OnlyEntry(t, ledger.Payment)
	late.ApplyOutcome(reservation.Owner, ledger.CallOutcome{
		State: ledger.Unknown, Status: ledger.Pending, ResponseStatus: 201, ResponseBody: []byte(`{}`),
	}, w.Clock.Now())
	late.Version, late.Writer = late.Version+1, "late"
	w.Ledger.Overwrite(late)
	if repeat := w.Send(t, ussdEvent(t)).AssertStatus(t, 201); repeat.Body != first.Body {
		t.Errorf("decision pay-repeat: %s, want %s", repeat.Body, first.Body)
	}
	w.AssertSingleEffect(t, expectedEffect, 1)
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
			if len(e.Outbox.Waiting) != 1 || e.Outbox.Waiting[0].Status != c.status {
				t.Errorf("decision pay-statuses: outbox %+v, want one notification of %s", e.Outbox.Waiting, c.status)
			}
			w.Send(t, loadEvent(t, c.channel)).AssertStatus(t, c.repeat)
			e = w.OnlyEntry(t, ledger.Payment)
			if wasStored := e.Response.Status != 0; wasStored != (c.repeat != 409) {
				t.Errorf("decision pay-repeat: the stored response has the status %d after the repeat's %d",
					e.Response.Status, c.repeat)
			}
			w.AssertOperatorCalls(t, 1)
		})
	}
}
