package gatewayctl

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// show lists each attempt with its time, outcome, cause, the operator's status and what the merchant was sent.
func TestShowCallAttempts(t *testing.T) {
	d, shop := newShopTool(t)
	e := d.mustReadEntry(d.addUnknownCharge(shop, "c1"))
	e.SentAt, e.ReservedAt = d.now.Add(2*time.Minute), d.now.Add(2*time.Minute)
	e.CallAttempts = []ledger.CallAttempt{
		{At: d.now, Outcome: ledger.CallNotSent, Reason: "limit-store", Response: 503},
		{At: d.now.Add(time.Minute), Millis: 1200, Outcome: ledger.CallNotApplied, Reason: "unavailable",
			HTTPStatus: 503, Response: 503},
		{At: d.now.Add(2 * time.Minute), Millis: 20000, Outcome: ledger.CallUnknown, Reason: "timeout",
			Response: 504},
		{At: d.now.Add(3 * time.Minute), Outcome: ledger.CallLapsed},
	}
	d.ledger.Overwrite(e)
	d.now = d.now.Add(time.Hour)
	d.expectOutput("charge show "+e.ID,
		"first sent", "2026-03-01T12:01:00Z",
		"no lookup", "may send the same request again until 2026-03-02T11:52:00Z",
		"call attempt", "not-sent: limit-store, the merchant was sent 503",
		"first sent", "not-applied: unavailable, after 1.2 s, the operator responded 503, the merchant was sent 503",
		"unknown: timeout, after 20.0 s, the merchant was sent 504", "no outcome was recorded",
		"listed again for a person")
	d.now = d.now.Add(48 * time.Hour)
	history := query[entryHistory](d, "charge show "+e.ID)
	checkEqual(t, "attempts", len(history.CallAttempts), 4)
	checkEqual(t, "reason of no lookup", history.NoLookup, "no operator has a status lookup for it: "+
		"get the outcome from the operator by the upstream key")
	paid := d.addDeliveredPayment(shop, 1, d.now)
	paid.ReservedAt = d.now
	d.ledger.Overwrite(paid)
	d.expectOutput("payment show ShopA_1", "no lookup", "its status is final", "call attempt",
		"succeeded, the merchant was sent 201")
}

func TestFirstSend(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	attempt := func(minute int, outcome string, status int) ledger.CallAttempt {
		return ledger.CallAttempt{At: at.Add(time.Duration(minute) * time.Minute), Outcome: outcome, HTTPStatus: status}
	}
	notSent, noConnection := attempt(1, ledger.CallNotSent, 0), attempt(2, ledger.CallNotApplied, 0)
	for name, c := range map[string]struct {
		entry ledger.Entry
		want  time.Time
	}{
		"success at once":      {ledger.Entry{State: ledger.Done, SentAt: at}, at},
		"released, body bound": {ledger.Entry{State: ledger.Released, SentAt: at, Fingerprint: "f"}, at},
		"released unsent":      {ledger.Entry{State: ledger.Released, SentAt: at}, time.Time{}},
		"never connected": {ledger.Entry{State: ledger.Released, SentAt: at, Fingerprint: "f",
			CallAttempts: []ledger.CallAttempt{notSent, noConnection}}, time.Time{}},
		"refused, then in flight": {ledger.Entry{State: ledger.Reserved, ReservedAt: at.Add(time.Hour),
			CallAttempts: []ledger.CallAttempt{noConnection}}, at.Add(time.Hour)},
		"unavailable is a send": {ledger.Entry{State: ledger.Released,
			CallAttempts: []ledger.CallAttempt{notSent, attempt(3, ledger.CallNotApplied, 503)}},
			at.Add(3 * time.Minute)},
		"lapsed may be a send": {ledger.Entry{State: ledger.Unknown,
			CallAttempts: []ledger.CallAttempt{attempt(4, ledger.CallLapsed, 0)}}, at.Add(4 * time.Minute)},
	} {
		checkEqual(t, name, firstSend(&c.entry), c.want)
	}
}

func TestNextLookup(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	soon, later := now.Add(time.Minute), now.Add(time.Hour)
	pay := func(state ledger.State, change func(*ledger.Entry)) *ledger.Entry {
		e := &ledger.Entry{
			Key: ledger.Key{Kind: ledger.Payment}, Operator: "sandbox", State: state, Status: ledger.Pending,
		}
		change(e)
		return e
	}
	charge := &ledger.Entry{Key: ledger.Key{Kind: ledger.Charge}, Operator: "sandbox", State: ledger.Done}
	for name, c := range map[string]struct {
		entry  *ledger.Entry
		at     time.Time
		reason string
	}{
		"pending": {pay(ledger.Done, func(e *ledger.Entry) { e.PollAt = later }), later, ""},
		"claimed": {pay(ledger.Done, func(e *ledger.Entry) {
			e.PollAt, e.Claim = later, ledger.Claim{Status: ledger.Successful, CheckAt: soon}
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
		"no lookup": {pay(ledger.Done, func(e *ledger.Entry) { e.Operator = "other" }), time.Time{},
			"operator other has no status lookup"},
		"a finished charge": {charge, time.Time{}, "its outcome is known"},
	} {
		at, reason := nextLookup(c.entry, now)
		checkEqual(t, name, at, c.at)
		checkEqual(t, name+": reason", reason, c.reason)
	}
}

func TestResponseText(t *testing.T) {
	refusal := []byte(`{"requestError":{"policyException":{"messageId":"POL0001","text":"t","variables":[]}}}`)
	checkEqual(t, "a refusal", responseText(&ledger.Entry{ResponseStatus: 403, ResponseBody: refusal}), "403 POL0001")
	checkEqual(t, "no body", responseText(&ledger.Entry{ResponseStatus: 201}), "201")
}
