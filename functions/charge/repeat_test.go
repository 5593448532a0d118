package charge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// otherBodyEvent is the golden charge with another amount under the same correlator.
func otherBodyEvent(t testing.TB) *operationtest.Event {
	t.Helper()
	return newEvent(t).SetBodyPart(amount, "700")
}

// decision "charge-repeat".
func TestRepeat(t *testing.T) {
	t.Run("decision charge-repeat: the first response is replayed, nothing is charged", func(t *testing.T) {
		w, first := suite.SendFirst(t)
		w.Clock.Advance(1000 * time.Hour)
		w.Send(t, newEvent(t).SetHeader("gw-token", "renewed")).AssertRepeatOf(t, first)
		w.AssertSingleEffect(t, expectedEffect, 1)
		w.AssertCounted(t, "RepeatedRequests")
		if count := w.LastLine(t)["MismatchedRepeats"]; count != nil {
			t.Errorf("an equal repeat is counted as mismatched: %v", count)
		}
	})
	for name, e := range map[string]*operationtest.Event{
		"a different body":           otherBodyEvent(t),
		"another number format":      newEvent(t).SetRawBody(strings.Replace(newEvent(t).Body(), `"500"`, `500`, 1)),
		"another reference":          newEvent(t).SetBodyPart(reference, "REF-2"),
		"another gw-alias":           newEvent(t).SetHeader("gw-alias", "tel:+2250101010101"),
		"another country":            newEvent(t).SetHeader("X-Operator-MCO", "OSN"),
		"another country's currency": newEvent(t).SetHeader("X-Operator-MCO", "OCM").SetBodyPart(currency, "XAF"),
	} {
		t.Run("decision charge-repeat: "+name+" replays the first response and is counted", func(t *testing.T) {
			w, first := suite.SendFirst(t)
			w.Send(t, e).AssertRepeatOf(t, first)
			w.AssertSingleEffect(t, expectedEffect, 1)
			w.AssertCounted(t, "MismatchedRepeats")
		})
	}
	t.Run("decision charge-repeat: an invalid body is refused even on a repeat", func(t *testing.T) {
		w, _ := suite.SendFirst(t)
		w.Send(t, newEvent(t).SetBodyPart(amount, "0")).AssertError(t, 400, "SVC0002", amount)
	})
	t.Run("decision charge-repeat: without a correlator the reference is the key", func(t *testing.T) {
		w := newFixture(t)
		first := w.Send(t, newEvent(t).RemoveBodyPart(correlator)).AssertStatus(t, 201)
		w.Send(t, newEvent(t).RemoveBodyPart(correlator)).AssertRepeatOf(t, first)
		w.Send(t, otherBodyEvent(t).RemoveBodyPart(correlator)).AssertRepeatOf(t, first)
		w.AssertSingleEffect(t, "charge DemoShop~REF-1001", 1)
	})
	t.Run("decision charge-repeat: two merchants may use the same correlator and reference", func(t *testing.T) {
		w := newFixture(t)
		one := w.Send(t, newEvent(t)).AssertStatus(t, 201)
		two := w.Send(t, newEvent(t).SetHeader("Authorization", operationtest.OtherToken)).AssertStatus(t, 201)
		if one.Body == two.Body || len(w.Driver.Effects()) != 2 {
			t.Errorf("effects %q", w.Driver.Effects())
		}
	})
}

// decision "charge-reference".
func TestReference(t *testing.T) {
	taken := func(t *testing.T, w *operationtest.Fixture, e *operationtest.Event) {
		t.Helper()
		w.Send(t, e).AssertError(t, 409, "SVC0005", "REF-1001", reference)
		w.AssertSingleEffect(t, expectedEffect, 1)
	}
	t.Run("decision charge-reference: a new correlator", func(t *testing.T) {
		w, _ := suite.SendFirst(t)
		taken(t, w, newEvent(t).SetBodyPart(correlator, "c-2"))
		w.AssertCallCounts(t, 2, 2, 2, 1) // three writes and no call
		taken(t, w, newEvent(t).SetBodyPart(correlator, "c-2"))
	})
	t.Run("decision charge-reference: no correlator after one with it", func(t *testing.T) {
		w, _ := suite.SendFirst(t)
		taken(t, w, newEvent(t).RemoveBodyPart(correlator))
	})
	t.Run("decision charge-reference: a correlator after one without it", func(t *testing.T) {
		w := newFixture(t)
		w.Send(t, newEvent(t).RemoveBodyPart(correlator)).AssertStatus(t, 201)
		w.Send(t, newEvent(t)).AssertError(t, 409, "SVC0005", "REF-1001", reference)
		w.AssertSingleEffect(t, "charge DemoShop~REF-1001", 1)
	})
	t.Run("decision charge-reference: the new correlator is released for any body", func(t *testing.T) {
		w, _ := suite.SendFirst(t)
		taken(t, w, newEvent(t).SetBodyPart(correlator, "c-2"))
		w.Send(t, otherBodyEvent(t).SetBodyPart(correlator, "c-2").SetBodyPart(reference, "REF-2")).AssertStatus(t, 201)
		if got := fmt.Sprint(w.Driver.Effects()); got != "[charge DemoShop.c-1001 charge DemoShop.c-2]" {
			t.Errorf("effects %s", got)
		}
	})
	t.Run("decision charge-reference: a release that cannot be stored is an error", func(t *testing.T) {
		w, _ := suite.SendFirst(t)
		w.FailEvery(storetest.Replace)
		w.Send(t, newEvent(t).SetBodyPart(correlator, "c-2")).AssertError(t, 500, "SVC0001", "PDK_SMSW_0001")
		w.AssertSingleEffect(t, expectedEffect, 1)
	})
}

// decision "charge-refusal".
func TestRefusal(t *testing.T) {
	for _, c := range []struct {
		id        string
		status    int
		variables []string
	}{
		{"POL0253", 403, nil}, {"POL1000", 403, nil}, {"POL0001", 403, []string{"Expired contract"}},
		{"SVC0270", 400, nil},
	} {
		t.Run("decision charge-refusal: "+c.id+" is stored and replayed byte for byte", func(t *testing.T) {
			w := newFixture(t).WithBehaviours(operationtest.RefuseFinally(c.id, c.variables...))
			first := w.Send(t, newEvent(t))
			first.AssertError(t, c.status, c.id, c.variables...)
			w.Send(t, newEvent(t)).AssertRepeatOf(t, first)
			w.Send(t, otherBodyEvent(t)).AssertRepeatOf(t, first)
			w.AssertCallCounts(t, 3, 1, 1, 1)
			first.AssertHeader(t, "Location", "")
			w.AssertState(t, ledger.Charge, ledger.Refused)
		})
	}
}

// decision "charge-unknown" and "unknown-sticks".
func TestUnknownOutcome(t *testing.T) {
	t.Run("decision charge-unknown: a retry sends again under the same key", func(t *testing.T) {
		w := suite.LoseFirst(t)
		w.AssertCounted(t, "UnknownOutcomes")
		first := w.Send(t, newEvent(t)).AssertStatus(t, 201)
		w.Send(t, newEvent(t)).AssertRepeatOf(t, first)
		w.AssertSingleEffect(t, expectedEffect, 2)
		if calls := w.Driver.Calls(); calls[0].Call.MayRepeat || !calls[1].Call.MayRepeat {
			t.Error("decision charge-unknown: the second call is a re-send, the first is not")
		}
	})
	for name, step := range map[string]operationtest.Behaviour{
		"a 503": operationtest.RespondUnavailable, "a 400": operationtest.RejectRequest("SVC0002", "x"),
		"a 401": operationtest.RejectCredentials,
	} {
		t.Run("decision unknown-sticks: "+name+" on the retry proves nothing", func(t *testing.T) {
			w := newFixture(t).WithBehaviours(operationtest.LoseResponse, step, step)
			w.Send(t, newEvent(t)).AssertUnknown(t)
			w.Send(t, newEvent(t)).AssertUnknown(t)
			w.Send(t, newEvent(t)).AssertUnknown(t)
			w.Send(t, newEvent(t)).AssertStatus(t, 201)
			w.AssertSingleEffect(t, expectedEffect, 4)
		})
	}
	t.Run("decision repeat-window: after it an unknown is never sent again", func(t *testing.T) {
		w := suite.LoseFirst(t)
		w.Clock.Advance(24*time.Hour - 10*time.Minute - time.Millisecond) // the margin of a send and of clocks
		w.Driver.SetBehaviours(operationtest.LoseResponse)
		w.Send(t, newEvent(t)).AssertUnknown(t)
		w.AssertSingleEffect(t, expectedEffect, 2)
		w.Clock.Advance(time.Millisecond)
		w.Send(t, newEvent(t)).AssertUnknown(t)
		w.AssertSingleEffect(t, expectedEffect, 2)
	})
}

// decision "released" and "outcomes".
func TestReleased(t *testing.T) {
	cases := []struct {
		name      string
		step      operationtest.Behaviour
		status    int
		id        string
		variables []string
		retry     bool
	}{
		{"operator down", operationtest.RespondUnavailable, 503, "SVC0001", []string{"PDK_SMSW_0013"}, true},
		{"our credentials refused", operationtest.RejectCredentials, 502, "SVC0001", []string{"PDK_SMSW_0002"}, false},
		{"the operator's SVC", operationtest.RejectRequest("SVC0004", "x"), 400, "SVC0004", []string{"x"}, false},
		{"the operator's POL", operationtest.RejectRequest("POL0253"), 403, "POL0253", nil, false},
	}
	for _, c := range cases {
		t.Run("decision released: "+c.name+", then the same request takes it over", func(t *testing.T) {
			w := newFixture(t).WithBehaviours(c.step)
			response := w.Send(t, newEvent(t))
			response.AssertError(t, c.status, c.id, c.variables...)
			if got := response.Header["Retry-After"]; (got != "") != c.retry {
				t.Errorf("Retry-After %q, want one: %v", got, c.retry)
			}
			w.AssertState(t, ledger.Charge, ledger.Released)
			w.Send(t, newEvent(t)).AssertStatus(t, 201)
			w.AssertSingleEffect(t, expectedEffect, 2)
		})
	}
	t.Run("decision released: another body under the key is 409", func(t *testing.T) {
		w := newFixture(t).WithBehaviours(operationtest.RespondUnavailable)
		w.Send(t, newEvent(t)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
		w.Send(t, otherBodyEvent(t)).AssertError(t, 409, "SVC0005", "c-1001", correlator)
		w.AssertCallCounts(t, 2, 1, 1, 1)
	})
}

// The stored charge has each attempt with its outcome and what the merchant was sent, without a write of its own.
func TestCallAttemptsAreStored(t *testing.T) {
	w := newFixture(t).WithBehaviours(operationtest.RejectCredentials, operationtest.RespondUnavailable)
	w.Send(t, newEvent(t)).AssertStatus(t, 502)
	w.Send(t, newEvent(t)).AssertStatus(t, 503)
	w.Send(t, newEvent(t)).AssertStatus(t, 201)
	var got []string
	for _, a := range w.OnlyEntry(t, ledger.Charge).Call.Attempts {
		got = append(got, fmt.Sprintf("%s %s %d", a.Outcome, a.Reason, a.Response))
	}
	want := "[not-applied rejected 502 not-applied unavailable 503 succeeded  201]"
	if fmt.Sprint(got) != want {
		t.Errorf("attempts %s, want %s", got, want)
	}
	clean, _ := suite.SendFirst(t)
	if attempts := clean.OnlyEntry(t, ledger.Charge).Call.Attempts; attempts != nil {
		t.Errorf("a success at once has attempts of its own: %v", attempts)
	}
}

// An attempt that ended before the call is kept too, as one that sent nothing.
func TestUnsentAttemptIsStored(t *testing.T) {
	w, _ := suite.SendFirst(t)
	w.Send(t, newEvent(t).SetBodyPart(correlator, "c-2")).AssertStatus(t, 409)
	for _, e := range w.Ledger.All() {
		if e.Request.Correlator != "c-2" {
			continue
		}
		if len(e.Call.Attempts) != 1 || e.Call.Attempts[0].Outcome != ledger.CallNotSent ||
			e.Call.Attempts[0].Reason != "reference-taken" || e.Call.Attempts[0].Response != 409 {
			t.Errorf("attempts %+v", e.Call.Attempts)
		}
	}
}

// decision "charge-unknown": every 504 of a charge that is stored names it.
func TestUnknownLocation(t *testing.T) {
	path := "/transactions/amount/" + ledger.ChargeID(operationtest.DemoProfile().ID, "c-1001", "")
	w := newFixture(t).WithBehaviours(operationtest.LoseResponse)
	w.Send(t, newEvent(t)).AssertUnknownAt(t, path)
	w.Send(t, otherBodyEvent(t)).AssertUnknownAt(t, path)
	w.Ledger.FailNext(storetest.ClaimReference, storetest.FailedBeforeApply)
	w.Send(t, newEvent(t)).AssertUnknownAt(t, path)
	w.Ledger.FailNext(storetest.Replace, storetest.FailedBeforeApply)
	w.Clock.Advance(24 * time.Hour)
	w.Send(t, newEvent(t)).AssertUnknownAt(t, path)
}

// decision "charge-repeat": the 504 of another body under the key of an unknown charge has a reason. It names the parts
// that differ, if they are stored.
func TestOtherBody(t *testing.T) {
	change := func(path, value string) func(*operationtest.Event) {
		return func(e *operationtest.Event) { e.SetBodyPart(path, value) }
	}
	for _, c := range []struct {
		name   string
		change func(*operationtest.Event)
		reason string
		parts  string
	}{
		{"the same request", func(*operationtest.Event) {}, "", ""},
		{"another amount", change(amount, "700"), "other-body", amount},
		{"the amount in another form", change(amount, "500.00"), "other-body", amount},
		{"another currency", func(e *operationtest.Event) {
			e.SetHeader("X-Operator-MCO", "OCM").SetBodyPart(currency, "XAF")
		}, "other-body", currency},
		{"another referenceCode", change(reference, "REF-2"), "other-body", reference},
		{"several parts", func(e *operationtest.Event) {
			e.SetBodyPart(reference, "REF-2").SetBodyPart(amount, "700")
		}, "other-body", amount + ", " + reference},
		{"a part that is not stored", change(description, "B"), "other-body", ""},
		{"another alias", func(e *operationtest.Event) { e.SetHeader("gw-alias", "other") }, "other-body", ""},
	} {
		t.Run("decision charge-repeat: "+c.name, func(t *testing.T) {
			w := suite.LoseFirst(t)
			w.Driver.SetBehaviours(operationtest.LoseResponse)
			before := w.Ledger.CallCount(storetest.Insert)
			event := newEvent(t)
			c.change(event)
			response := w.Send(t, event)
			response.AssertUnknown(t)
			got := [2]string{response.Header["X-Error-Reason"], response.Header["X-Error-Part"]}
			if diff := cmp.Diff([2]string{c.reason, c.parts}, got); diff != "" {
				t.Errorf("X-Error-Reason and X-Error-Part (-want +got):\n%s", diff)
			}
			if sent := len(w.Driver.Calls()) - 1; (sent != 0) != (c.reason == "") {
				t.Errorf("%d requests were sent to the operator", sent)
			}
			state := w.OnlyEntry(t, ledger.Charge).State
			if w.Ledger.CallCount(storetest.Insert) != before+1 || state != ledger.Unknown {
				t.Error("the charge is not the first one, still unknown")
			}
		})
	}
}

// decision "restored".
func TestRestored(t *testing.T) { suite.CheckRestored(t, 504) }
