package charge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
)

// lease is longer than any reservation lives.
const lease = time.Minute

// other is the golden charge with another body under the same correlator.
func other(t testing.TB) *operationtest.Event {
	t.Helper()
	return event(t).Set(amount, "700")
}

// decision "charge-repeat".
func TestRepeat(t *testing.T) {
	t.Run("decision charge-repeat: the first answer again, nothing charged", func(t *testing.T) {
		w := shop(t)
		first := w.Do(t, event(t)).Succeeds(t, 201)
		w.Clock.Advance(1000 * time.Hour)
		w.Do(t, event(t).Header("gw-token", "renewed")).Replays(t, first)
		w.OneEffect(t, effect, 1)
		if line := w.LastLine(t); line["Replays"] != 1.0 || line["MismatchedReplays"] != nil {
			t.Errorf("line %v", line)
		}
	})
	for name, e := range map[string]*operationtest.Event{
		"a different body":           other(t),
		"another number format":      event(t).Raw(strings.Replace(event(t).Body(), `"500"`, `500`, 1)),
		"another reference":          event(t).Set(reference, "REF-2"),
		"another gw-alias":           event(t).Header("gw-alias", "tel:+2250101010101"),
		"another country":            event(t).Header("X-Operator-MCO", "OSN"),
		"another country's currency": event(t).Header("X-Operator-MCO", "OCM").Set(currency, "XAF"),
	} {
		t.Run("decision charge-repeat: "+name+" replays the first answer and is counted", func(t *testing.T) {
			w := shop(t)
			first := w.Do(t, event(t)).Succeeds(t, 201)
			w.Do(t, e).Replays(t, first)
			w.OneEffect(t, effect, 1)
			if w.LastLine(t)["MismatchedReplays"] != 1.0 {
				t.Errorf("line %v", w.LastLine(t))
			}
		})
	}
	t.Run("decision charge-repeat: an invalid body is refused all the same", func(t *testing.T) {
		w := shop(t)
		w.Do(t, event(t)).Succeeds(t, 201)
		w.Do(t, event(t).Set(amount, "0")).Fails(t, 400, "SVC0002", amount)
	})
	t.Run("decision charge-repeat: without a correlator the reference is the key", func(t *testing.T) {
		w := shop(t)
		first := w.Do(t, event(t).Remove(correlator)).Succeeds(t, 201)
		w.Do(t, event(t).Remove(correlator)).Replays(t, first)
		w.Do(t, other(t).Remove(correlator)).Replays(t, first)
		w.OneEffect(t, "charge DemoShop~REF-1001", 1)
	})
	t.Run("decision charge-repeat: two merchants may use the same correlator and reference", func(t *testing.T) {
		w := shop(t)
		one := w.Do(t, event(t)).Succeeds(t, 201)
		two := w.Do(t, event(t).Header("Authorization", operationtest.OtherToken)).Succeeds(t, 201)
		if one.Body == two.Body || len(w.Driver.Effects()) != 2 {
			t.Errorf("effects %q", w.Driver.Effects())
		}
	})
}

// decision "charge-reference".
func TestReference(t *testing.T) {
	taken := func(t *testing.T, w *operationtest.World, e *operationtest.Event) {
		t.Helper()
		w.Do(t, e).Fails(t, 409, "SVC0005", "REF-1001", reference)
		w.OneEffect(t, effect, 1)
	}
	t.Run("decision charge-reference: a new correlator", func(t *testing.T) {
		w := shop(t)
		w.Do(t, event(t)).Succeeds(t, 201)
		taken(t, w, event(t).Set(correlator, "c-2"))
		taken(t, w, event(t).Set(correlator, "c-2"))
	})
	t.Run("decision charge-reference: no correlator after one with it", func(t *testing.T) {
		w := shop(t)
		w.Do(t, event(t)).Succeeds(t, 201)
		taken(t, w, event(t).Remove(correlator))
	})
	t.Run("decision charge-reference: a correlator after one without it", func(t *testing.T) {
		w := shop(t)
		w.Do(t, event(t).Remove(correlator)).Succeeds(t, 201)
		w.Do(t, event(t)).Fails(t, 409, "SVC0005", "REF-1001", reference)
		w.OneEffect(t, "charge DemoShop~REF-1001", 1)
	})
	t.Run("decision charge-reference: the new correlator is released for any body", func(t *testing.T) {
		w := shop(t)
		w.Do(t, event(t)).Succeeds(t, 201)
		taken(t, w, event(t).Set(correlator, "c-2"))
		w.Do(t, other(t).Set(correlator, "c-2").Set(reference, "REF-2")).Succeeds(t, 201)
		if got := fmt.Sprint(w.Driver.Effects()); got != "[charge DemoShop.c-1001 charge DemoShop.c-2]" {
			t.Errorf("effects %s", got)
		}
	})
	t.Run("decision charge-reference: it counts three writes and no call", func(t *testing.T) {
		w := shop(t)
		w.Do(t, event(t)).Succeeds(t, 201)
		taken(t, w, event(t).Set(correlator, "c-2"))
		w.Counts(t, 2, 2, 2, 1)
	})
}

// decision "charge-refusal".
func TestRefusal(t *testing.T) {
	for _, c := range []struct {
		id        string
		status    int
		variables []string
	}{{"POL0253", 403, nil}, {"POL1000", 403, nil}, {"POL0001", 403, []string{"Expired contract"}}, {"SVC0270", 400, nil}} {
		t.Run("decision charge-refusal: "+c.id+" is stored and replayed byte for byte", func(t *testing.T) {
			w := shop(t)
			w.Driver.Script(operationtest.Refuse(c.id, c.variables...))
			first := w.Do(t, event(t))
			first.Fails(t, c.status, c.id, c.variables...)
			w.Do(t, event(t)).Replays(t, first)
			w.Do(t, other(t)).Replays(t, first)
			w.Counts(t, 3, 1, 1, 1)
			if first.Header["Location"] != "" || w.Only(t, ledger.Charge).State != ledger.Refused {
				t.Errorf("a refusal with Location %q", first.Header["Location"])
			}
		})
	}
}

// decision "charge-unknown" and "unknown-sticks".
func TestUnknown(t *testing.T) {
	unknown := func(t *testing.T, w *operationtest.World, e *operationtest.Event) {
		t.Helper()
		answer := w.Do(t, e)
		answer.Fails(t, 504, "SVC0001", "PDK_SMSW_0011")
		if answer.Header["Retry-After"] == "" {
			t.Error("504 without Retry-After")
		}
	}
	t.Run("decision charge-unknown: a retry sends again under the same key", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.LoseAnswer)
		unknown(t, w, event(t))
		if w.LastLine(t)["Unknowns"] != 1.0 {
			t.Errorf("line %v", w.LastLine(t))
		}
		first := w.Do(t, event(t)).Succeeds(t, 201)
		w.Do(t, event(t)).Replays(t, first)
		w.OneEffect(t, effect, 2)
		if calls := w.Driver.Calls(); calls[0].Call.Resend || !calls[1].Call.Resend {
			t.Error("decision charge-unknown: the second call is a re-send, the first is not")
		}
	})
	for name, step := range map[string]operationtest.Behaviour{
		"a 503": operationtest.Down, "a 400": operationtest.Reject("SVC0002", "x"), "a 401": operationtest.RefuseUs,
	} {
		t.Run("decision unknown-sticks: "+name+" on the retry proves nothing", func(t *testing.T) {
			w := shop(t)
			w.Driver.Script(operationtest.LoseAnswer, step, step)
			unknown(t, w, event(t))
			unknown(t, w, event(t))
			unknown(t, w, event(t))
			w.Do(t, event(t)).Succeeds(t, 201)
			w.OneEffect(t, effect, 4)
		})
	}
	t.Run("decision unknown-sticks: a final refusal settles it", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.Vanish, operationtest.Refuse("POL1000"))
		unknown(t, w, event(t))
		w.Do(t, event(t)).Fails(t, 403, "POL1000")
		w.Do(t, event(t)).Fails(t, 403, "POL1000")
		w.Counts(t, 3, 2, 3, 2)
	})
	t.Run("decision charge-repeat: another body while unknown is 504 and never sent", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.LoseAnswer)
		unknown(t, w, event(t))
		unknown(t, w, other(t))
		w.OneEffect(t, effect, 1)
		if w.LastLine(t)["MismatchedReplays"] != 1.0 {
			t.Errorf("decision charge-repeat: not counted: %v", w.LastLine(t))
		}
	})
	t.Run("decision repeat-window: after it an unknown is never sent again", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.LoseAnswer)
		unknown(t, w, event(t))
		w.Clock.Advance(24*time.Hour - 10*time.Minute - time.Millisecond) // the margin of a send and of clocks
		w.Driver.Script(operationtest.LoseAnswer)
		unknown(t, w, event(t))
		w.OneEffect(t, effect, 2)
		w.Clock.Advance(time.Millisecond)
		unknown(t, w, event(t))
		w.OneEffect(t, effect, 2)
	})
	t.Run("decision fingerprint: the account is pinned", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.LoseAnswer)
		unknown(t, w, event(t))
		w.Driver.SetAccount("a2", nil)
		w.Do(t, event(t)).Succeeds(t, 201)
		if got := w.Driver.Calls()[1].Call.Account; got != "a1" {
			t.Errorf("account %s", got)
		}
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
		{"operator down", operationtest.Down, 503, "SVC0001", []string{"PDK_SMSW_0013"}, true},
		{"our credentials refused", operationtest.RefuseUs, 502, "SVC0001", []string{"PDK_SMSW_0002"}, false},
		{"the operator's SVC", operationtest.Reject("SVC0004", "x"), 400, "SVC0004", []string{"x"}, false},
		{"the operator's POL", operationtest.Reject("POL0253"), 403, "POL0253", nil, false},
	}
	for _, c := range cases {
		t.Run("decision released: "+c.name+", then the same request takes it over", func(t *testing.T) {
			w := shop(t)
			w.Driver.Script(c.step)
			answer := w.Do(t, event(t))
			answer.Fails(t, c.status, c.id, c.variables...)
			if (answer.Header["Retry-After"] != "") != c.retry || w.Only(t, ledger.Charge).State != ledger.Released {
				t.Errorf("Retry-After %q", answer.Header["Retry-After"])
			}
			w.Do(t, event(t)).Succeeds(t, 201)
			w.OneEffect(t, effect, 2)
		})
	}
	t.Run("decision released: another body under the key is 409", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.Down)
		w.Do(t, event(t)).Fails(t, 503, "SVC0001", "PDK_SMSW_0013")
		w.Do(t, other(t)).Fails(t, 409, "SVC0005", "c-1001", correlator)
		w.Counts(t, 2, 1, 1, 1)
	})
	t.Run("decision outcomes: the operator's refusal of our credentials is counted", func(t *testing.T) {
		w := shop(t)
		w.Driver.Script(operationtest.RefuseUs)
		w.Do(t, event(t))
		if w.LastLine(t)["OperatorAuthFailures"] != 1.0 {
			t.Errorf("line %v", w.LastLine(t))
		}
	})
}

// decision "upstream-key".
func TestUpstreamKey(t *testing.T) {
	long := strings.Repeat("k", 100)
	for _, c := range []struct{ name, correlator, reference, want string }{
		{"with a correlator", "c-7", "R", "DemoShop.c-7"},
		{"without", "", "R-7", "DemoShop~R-7"},
		{"of exactly 64 characters", strings.Repeat("k", 55), "R", "DemoShop." + strings.Repeat("k", 55)},
		{"longer", long, "R", "DemoShop!"},
		{"longer, without a correlator", "", long, "DemoShop!"},
	} {
		t.Run("decision upstream-key: "+c.name, func(t *testing.T) {
			w := shop(t)
			e := event(t).Set(correlator, c.correlator).Set(reference, c.reference)
			if c.correlator == "" {
				e.Remove(correlator)
			}
			w.Do(t, e).Succeeds(t, 201)
			key := w.Driver.Calls()[0].Call.Key
			if len(key) > 64 || !strings.HasPrefix(key, c.want) || (len(key) != len(c.want) && c.want != "DemoShop!") {
				t.Errorf("key %s, want %s", key, c.want)
			}
		})
	}
}
