package ledger_test

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// start is the moment that the tests' entries were first reserved.
var start = time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC)

const window = time.Hour

const (
	replay, busy, taken, stuck, retake = ledger.StoredResponse, ledger.InFlight, ledger.KeyTaken, ledger.StillUnknown, ledger.TakenOver
)

// verdicts are what becomes of the same body and of another, each within the repeat window and past it.
type verdicts [4]ledger.Verdict

// all is one verdict whatever comes and when.
func all(v ledger.Verdict) verdicts { return verdicts{v, v, v, v} }

// existing makes an entry that holds the key, by a name for its state.
var existing = map[string]func(*ledger.Entry){
	"live": func(e *ledger.Entry) { e.State, e.LeaseUntil = ledger.Reserved, start.Add(100*time.Hour) },
	"live and told": func(e *ledger.Entry) {
		e.State, e.LeaseUntil, e.Status = ledger.Reserved, start.Add(100*time.Hour), told(e.Kind)
	},
	"lapsed":        func(e *ledger.Entry) { e.State, e.LeaseUntil = ledger.Reserved, start.Add(time.Second) },
	"unknown":       func(e *ledger.Entry) { e.State = ledger.Unknown },
	"unknown, told": func(e *ledger.Entry) { e.State, e.Status = ledger.Unknown, told(e.Kind) },
	"unknown, 201":  func(e *ledger.Entry) { e.State, e.ResponseStatus = ledger.Unknown, 201 },
	"released":      func(e *ledger.Entry) { e.State = ledger.Released },
	"released free": func(e *ledger.Entry) { e.State, e.Fingerprint = ledger.Released, "" },
	"done":          func(e *ledger.Entry) { e.State, e.ResponseStatus = ledger.Done, 201 },
	"done, final":   func(e *ledger.Entry) { e.State, e.ResponseStatus, e.Status = ledger.Done, 201, told(e.Kind) },
	"done, unasked": func(e *ledger.Entry) { e.State, e.Status = ledger.Done, told(e.Kind) },
	"refused":       func(e *ledger.Entry) { e.State, e.ResponseStatus = ledger.Refused, 403 },
	"no such state": func(e *ledger.Entry) { e.State = "later" },
	"another's":     func(e *ledger.Entry) { e.State, e.MerchantID = ledger.Done, "another" },
	"another's live": func(e *ledger.Entry) {
		e.State, e.MerchantID, e.LeaseUntil = ledger.Reserved, "another", start.Add(100*time.Hour)
	},
	"expired": func(e *ledger.Entry) { e.State, e.ExpireAt = ledger.Done, start.Add(time.Second) },
}

// common are the verdicts of the states that are alike in every kind; decided those of each kind.
var (
	common = map[string]verdicts{
		"live": all(busy), "live and told": all(busy), "released": {retake, retake, taken, taken},
		"released free": all(retake), "another's": all(taken), "another's live": all(taken), "expired": all(ledger.NewReservation),
	}
	decided = map[ledger.Kind]map[string]verdicts{
		ledger.Charge: {
			"lapsed": {retake, stuck, stuck, stuck}, "unknown": {retake, stuck, stuck, stuck},
			"unknown, told": {retake, stuck, stuck, stuck}, "unknown, 201": {retake, stuck, stuck, stuck},
			"done": all(replay), "done, final": all(replay), "done, unasked": {replay, replay, taken, taken}, "refused": all(replay),
			"no such state": {retake, stuck, stuck, stuck},
		},
		ledger.Payment: {
			"lapsed": {retake, stuck, taken, taken}, "unknown": {retake, stuck, taken, taken},
			"unknown, told": all(taken), "unknown, 201": {replay, replay, taken, taken},
			"done": {replay, replay, taken, taken}, "done, final": {replay, replay, taken, taken},
			"done, unasked": all(taken), "refused": {replay, replay, taken, taken},
			"no such state": {retake, stuck, taken, taken},
		},
		ledger.SMS: {
			"lapsed": {retake, stuck, taken, taken}, "unknown": {retake, stuck, taken, taken},
			"unknown, told": all(taken), "unknown, 201": {retake, stuck, taken, taken},
			"done": all(taken), "done, final": all(taken), "done, unasked": all(taken), "refused": {replay, replay, taken, taken},
			"no such state": {retake, stuck, taken, taken},
		},
	}
)

// TestDecide walks through every state of every kind, with the same and another body, within the repeat window and past
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
			e := &ledger.Entry{Key: ledger.Key{Kind: kind, ID: "1"}, MerchantID: "m", Fingerprint: "f", SentAt: start}
			set(e)
			for i, want := range expected {
				incoming := &ledger.Entry{Key: e.Key, MerchantID: "m", Fingerprint: []string{"f", "g"}[i/2]}
				age := window - time.Millisecond + time.Duration(i%2)*time.Millisecond
				if got := ledger.Decide(e, incoming, start.Add(age), window); got != want {
					t.Errorf("%s %s, body %s, after %s: %s, want %s", kind, name, incoming.Fingerprint, age, got, want)
				}
			}
		}
	}
}

// told is a status that the operator has reported of a kind.
func told(kind ledger.Kind) ledger.Status {
	switch kind {
	case ledger.Payment:
		return ledger.Successful
	case ledger.SMS:
		return ledger.DeliveredToNetwork
	default:
		return ""
	}
}

func TestDecideWithoutRepeatWindowNeverSendsAgain(t *testing.T) {
	for _, kind := range []ledger.Kind{ledger.Charge, ledger.Payment, ledger.SMS} {
		existing := &ledger.Entry{Key: ledger.Key{Kind: kind, ID: "1"}, State: ledger.Unknown, SentAt: start}
		if got := ledger.Decide(existing, existing, start, 0); got != ledger.StillUnknown {
			t.Errorf("%s: %s", kind, got)
		}
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

func TestVerdictNames(t *testing.T) {
	for v, want := range map[ledger.Verdict]string{ledger.NewReservation: "NewReservation", ledger.StillUnknown: "StillUnknown", 99: "Verdict?", -1: "Verdict?"} {
		if v.String() != want {
			t.Errorf("%d is %s, want %s", int(v), v, want)
		}
	}
}
