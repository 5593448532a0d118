package ledger_test

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

const window = time.Hour

const (
	stored, inFlight, taken = ledger.StoredResponse, ledger.InFlight, ledger.KeyTaken
	stillUnknown, takenOver = ledger.StillUnknown, ledger.TakenOver
)

// verdicts are those on the same body and on another one, each within the resend window and past it.
type verdicts [4]ledger.Verdict

// all is one verdict for every body and time.
func all(v ledger.Verdict) verdicts { return verdicts{v, v, v, v} }

// existing makes an entry that has the key, by a name for its state.
var existing = map[string]func(*ledger.Entry){
	"live": func(e *ledger.Entry) { e.State, e.LeaseUntil = ledger.Reserved, start.Add(100*time.Hour) },
	"live, reported": func(e *ledger.Entry) {
		e.State, e.LeaseUntil, e.Status = ledger.Reserved, start.Add(100*time.Hour), reportedStatus(e.Kind)
	},
	"lapsed":            func(e *ledger.Entry) { e.State, e.LeaseUntil = ledger.Reserved, start.Add(time.Second) },
	"unknown":           func(e *ledger.Entry) { e.State = ledger.Unknown },
	"unknown, reported": func(e *ledger.Entry) { e.State, e.Status = ledger.Unknown, reportedStatus(e.Kind) },
	"unknown, 201":      func(e *ledger.Entry) { e.State, e.Response.Status = ledger.Unknown, 201 },
	"released":          func(e *ledger.Entry) { e.State = ledger.Released },
	"released free":     func(e *ledger.Entry) { e.State, e.Request.Fingerprint = ledger.Released, "" },
	"done":              func(e *ledger.Entry) { e.State, e.Response.Status = ledger.Done, 201 },
	"done, final": func(e *ledger.Entry) {
		e.State, e.Response.Status, e.Status = ledger.Done, 201,
			reportedStatus(e.Kind)
	},
	"done, no response": func(e *ledger.Entry) { e.State, e.Status = ledger.Done, reportedStatus(e.Kind) },
	"refused":           func(e *ledger.Entry) { e.State, e.Response.Status = ledger.Refused, 403 },
	"no such state":     func(e *ledger.Entry) { e.State = "later" },
	"another's":         func(e *ledger.Entry) { e.State, e.Merchant.ID = ledger.Done, "another" },
	"another's live": func(e *ledger.Entry) {
		e.State, e.Merchant.ID, e.LeaseUntil = ledger.Reserved, "another", start.Add(100*time.Hour)
	},
	"expired": func(e *ledger.Entry) { e.State, e.ExpireAt = ledger.Done, start.Add(time.Second) },
}

// common are the verdicts of the states that are alike in every kind; decided those of each kind.
var (
	common = map[string]verdicts{
		"live": all(inFlight), "live, reported": all(inFlight), "released": {takenOver, takenOver, taken, taken},
		"released free": all(takenOver), "another's": all(taken), "another's live": all(taken),
		"expired": all(ledger.NewReservation),
	}
	repeatable = verdicts{takenOver, stillUnknown, taken, taken}
	decided    = map[ledger.Kind]map[string]verdicts{
		ledger.Charge: {
			"lapsed": chargeRepeatable, "unknown": chargeRepeatable, "unknown, reported": chargeRepeatable,
			"unknown, 201": chargeRepeatable, "no such state": chargeRepeatable,
			"done": all(stored), "done, final": all(stored), "refused": all(stored),
			"done, no response": {stored, stored, taken, taken},
		},
		ledger.Payment: {
			"lapsed": repeatable, "unknown": repeatable, "no such state": repeatable, "unknown, reported": all(taken),
			"unknown, 201": sameStored, "done": sameStored, "done, final": sameStored, "refused": sameStored,
			"done, no response": all(taken),
		},
		ledger.SMS: {
			"lapsed": repeatable, "unknown": repeatable, "no such state": repeatable, "unknown, 201": repeatable,
			"unknown, reported": all(taken), "done": all(taken), "done, final": all(taken),
			"done, no response": all(taken), "refused": sameStored,
		},
	}
	chargeRepeatable = verdicts{takenOver, stillUnknown, stillUnknown, stillUnknown}
	sameStored       = verdicts{stored, stored, taken, taken}
)

// TestDecide walks through every state of every kind, with the same and another body, within the resend window and past
// it (decisions "charge-repeat", "charge-unknown", "pay-repeat", "pay-unknown", "sms-duplicate", "released").
func TestDecide(t *testing.T) {
	for kind, own := range decided {
		for name, set := range existing {
			expected, found := own[name]
			if !found {
				expected, found = common[name]
			}
			if !found {
				t.Fatalf("%s %s: nothing is expected", kind, name)
			}
			e := &ledger.Entry{
				Key: ledger.Key{Kind: kind, ID: "1"}, Merchant: ledger.Merchant{ID: "m"},
				Request: ledger.Request{Fingerprint: "f"}, Call: ledger.Call{SentAt: start},
			}
			set(e)
			for i, want := range expected {
				incoming := &ledger.Entry{
					Key: e.Key, Merchant: ledger.Merchant{ID: "m"},
					Request: ledger.Request{Fingerprint: []string{"f", "g"}[i/2]},
				}
				age := window - time.Millisecond + time.Duration(i%2)*time.Millisecond
				if got := ledger.Decide(e, incoming, start.Add(age), window); got != want {
					t.Errorf("%s %s, body %s, after %s: %s, want %s", kind, name, incoming.Request.Fingerprint, age,
						got, want)
				}
			}
		}
	}
}

// reportedStatus is a status that the operator has reported of a kind.
func reportedStatus(kind ledger.Kind) ledger.Status {
	switch kind {
	case ledger.Payment:
		return ledger.Successful
	case ledger.SMS:
		return ledger.DeliveredToNetwork
	default:
		return ""
	}
}

func TestDecideOnNothingAndOnAReference(t *testing.T) {
	incoming := &ledger.Entry{}
	if got := ledger.Decide(nil, incoming, start, window); got != ledger.NewReservation {
		t.Errorf("nothing there: %s", got)
	}
	reference := &ledger.Entry{Key: ledger.Key{Kind: ledger.Reference, ID: "1"}}
	if got := ledger.Decide(reference, incoming, start, window); got != ledger.KeyTaken {
		t.Errorf("a reference: %s", got)
	}
}

// Without a resend window an unknown transaction is never sent again, also by a clock that is behind that of its send.
func TestDecideByAClockThatIsBehind(t *testing.T) {
	incoming := &ledger.Entry{}
	for kind := range decided {
		sentLater := &ledger.Entry{Key: ledger.Key{Kind: kind, ID: "k"}, Call: ledger.Call{State: ledger.Unknown}}
		sentLater.Merchant, sentLater.SentAt = incoming.Merchant, start.Add(20*time.Second)
		sentLater.Request.Fingerprint = incoming.Request.Fingerprint
		if got := ledger.Decide(sentLater, incoming, start, 0); got != stillUnknown {
			t.Errorf("unknown %s without a resend window, by a clock that is behind: %v", kind, got)
		}
	}
}

func TestVerdictNames(t *testing.T) {
	for v, want := range map[ledger.Verdict]string{
		ledger.NewReservation: "NewReservation", ledger.StillUnknown: "StillUnknown",
		ledger.StillUnknown + 1: "Verdict?", 99: "Verdict?", -1: "Verdict?",
	} {
		if v.String() != want {
			t.Errorf("%d is %s, want %s", int(v), v, want)
		}
	}
}
