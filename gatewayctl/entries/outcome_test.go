package entries

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

func TestFirstSend(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	attempt := func(minute int, outcome string, status int) ledger.CallAttempt {
		return ledger.CallAttempt{At: at.Add(time.Duration(minute) * time.Minute), Outcome: outcome, HTTPStatus: status}
	}
	notSent, noConnection := attempt(1, ledger.CallNotSent, 0), attempt(2, ledger.CallNotApplied, 0)
	called := func(state ledger.State, fingerprint string, attempts ...ledger.CallAttempt) ledger.Entry {
		return ledger.Entry{
			Call:    ledger.Call{State: state, SentAt: at, ReservedAt: at.Add(time.Hour), Attempts: attempts},
			Request: ledger.Request{Fingerprint: fingerprint},
		}
	}
	for name, c := range map[string]struct {
		entry ledger.Entry
		want  time.Time
	}{
		"success at once":         {called(ledger.Done, ""), at},
		"released, body bound":    {called(ledger.Released, "f"), at},
		"released unsent":         {called(ledger.Released, ""), time.Time{}},
		"never connected":         {called(ledger.Released, "f", notSent, noConnection), time.Time{}},
		"refused, then in flight": {called(ledger.Reserved, "", noConnection), at.Add(time.Hour)},
		"unavailable is a send": {called(ledger.Released, "", notSent, attempt(3, ledger.CallNotApplied, 503)),
			at.Add(3 * time.Minute)},
		"lapsed may be a send": {called(ledger.Unknown, "", attempt(4, ledger.CallLapsed, 0)), at.Add(4 * time.Minute)},
	} {
		if got := firstSend(&c.entry); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestNextLookup(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	soon, later := now.Add(time.Minute), now.Add(time.Hour)
	pay := func(state ledger.State, change func(*ledger.Entry)) *ledger.Entry {
		e := &ledger.Entry{
			Key: ledger.Key{Kind: ledger.Payment}, Route: ledger.Route{Operator: "sandbox"},
			Call: ledger.Call{State: state}, Progress: ledger.Progress{Status: ledger.Pending},
		}
		change(e)
		return e
	}
	charge := &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Charge}, Route: ledger.Route{Operator: "sandbox"},
		Call: ledger.Call{State: ledger.Done},
	}
	for name, c := range map[string]struct {
		entry  *ledger.Entry
		at     time.Time
		reason string
	}{
		"pending": {pay(ledger.Done, func(e *ledger.Entry) { e.Poll.At = later }), later, ""},
		"claimed": {pay(ledger.Done, func(e *ledger.Entry) {
			e.Poll.At, e.Claim = later, ledger.Claim{Status: ledger.Successful, CheckAt: soon}
		}), soon, ""},
		"claimed after a release": {pay(ledger.Released, func(e *ledger.Entry) {
			e.Claim = ledger.Claim{Status: ledger.Successful, CheckAt: soon}
		}), soon, ""},
		"in flight": {pay(ledger.Reserved, func(e *ledger.Entry) { e.LeaseUntil = soon }), time.Time{},
			"an attempt is in flight until 2026-03-01T12:01:00Z"},
		"lapsed":   {pay(ledger.Reserved, func(e *ledger.Entry) { e.LeaseUntil = now }), soon, ""},
		"released": {pay(ledger.Released, func(*ledger.Entry) {}), time.Time{}, "it was certainly not applied"},
		"final": {pay(ledger.Done, func(e *ledger.Entry) { e.Status = ledger.Failed }), time.Time{},
			"its status is final"},
		"no lookup": {pay(ledger.Done, func(e *ledger.Entry) { e.Route.Operator = "other" }), time.Time{},
			"operator other has no status lookup"},
		"a finished charge": {charge, time.Time{}, "its outcome is known"},
	} {
		if at, reason := nextLookup(c.entry, now); !at.Equal(c.at) || reason != c.reason {
			t.Errorf("%s: %s, %q, want %s, %q", name, at, reason, c.at, c.reason)
		}
	}
}

func TestResponseText(t *testing.T) {
	refusal := []byte(`{"requestError":{"policyException":{"messageId":"POL0001","text":"t","variables":[]}}}`)
	for want, e := range map[string]ledger.Entry{
		"403 POL0001": {Response: ledger.Response{Status: 403, Body: refusal}}, "201": {
			Response: ledger.Response{Status: 201},
		},
	} {
		if got := responseText(&e); got != want {
			t.Errorf("the response is %q, want %q", got, want)
		}
	}
}
