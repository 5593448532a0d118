package sandbox

import (
	"strings"
	"testing"
	"time"
)

// deliveryWords spells N, T and X as delivery statuses.
var deliveryWords = strings.NewReplacer("N", deliveredToNetwork, "T", deliveredToTerminal, "X", deliveryImpossible)

// send makes a call of a kind under its key, and returns the key.
func (r *testSandbox) send(kind, digits string) (key string, response testResponse) {
	r.Helper()
	switch kind {
	case kindCharge:
		return "Shop.k1", r.charge("Shop.k1", digits)
	case kindSMS:
		return "Shop.k1", r.sms("Shop.k1", digits)
	}
	return "Shop_1", r.pay(kind, "Shop_1", "070000"+digits)
}

// TestOutcomes checks each row of the outcomes on demand on the wire: the first call, its repeats, the callbacks, the
// effects at once and at last, and getStatus.
func TestOutcomes(t *testing.T) {
	const charge, tpe, sms = kindCharge, "tpe", kindSMS
	for _, c := range []struct {
		kind, digits, first, again string // several digits have one outcome
		callbacks                  string
		atOnce, effects            int
		status                     string
	}{
		{charge, "5555 1003 1006 1007 1008 1011 12x4", "201", "201", "", 1, 1, ""},
		{charge, "1001", "403 POL0253", "403 POL0253", "", 0, 0, ""},
		{charge, "1002", "403 POL1000", "403 POL1000", "", 0, 0, ""},
		{charge, "1005", "cut", "201", "", 1, 1, ""},
		{charge, "1009", "503 SVC0001", "503 SVC0001", "", 0, 0, ""},
		{charge, "1010", "200", "201", "", 1, 1, ""},
		{tpe, "5555", "201", "201", "successful", 0, 1, successful},
		{"ussd", "5555", "201", "201", "successful", 0, 1, successful},
		{tpe, "1001 1002", "201", "201", "failed", 0, 0, failed},
		{tpe, "1003", "201", "201", "", 0, 0, pending},
		{tpe, "1005", "cut", "201", "successful", 1, 1, successful},
		{tpe, "1006", "201", "201", "successful successful successful", 0, 1, successful},
		{tpe, "1007", "201", "201", "successful failed", 0, 1, successful},
		{tpe, "1008", "201", "201", "successful", 1, 1, successful},
		{tpe, "1009", "503 SVC0001", "503 SVC0001", "", 0, 0, "404 SVC0002"},
		{tpe, "1010", "200", "201", "successful", 1, 1, successful},
		{tpe, "1011", "201", "201", "", 0, 1, successful},
		{sms, "5555 1008 1011", "201", "409 SVC0005", "N T", 1, 1, ""},
		{sms, "1001", "201", "409 SVC0005", "X", 0, 0, ""},
		{sms, "1002", "403 POL0001", "403 POL0001", "", 0, 0, ""},
		{sms, "1003", "201", "409 SVC0005", "", 1, 1, ""},
		{sms, "1005", "cut", "409 SVC0005", "N T", 1, 1, ""},
		{sms, "1006", "201", "409 SVC0005", "N N N T T T", 1, 1, ""},
		{sms, "1007", "201", "409 SVC0005", "T N", 1, 1, ""},
		{sms, "1009", "503 SVC0001", "503 SVC0001", "", 0, 0, ""},
		{sms, "1010", "200", "409 SVC0005", "N T", 1, 1, ""},
	} {
		for digits := range strings.FieldsSeq(c.digits) {
			t.Run(c.kind+" "+digits, func(t *testing.T) {
				r, key := newTestSandbox(t), ""
				for _, want := range []string{c.first, c.again, c.again} {
					var response testResponse
					key, response = r.send(c.kind, digits)
					checkSummary(t, "call", response, want)
				}
				r.checkEffects(key, c.atOnce)
				isEarly := digits == "1008" && c.callbacks != ""
				equal(t, "a callback before the response", len(r.inbox.bodies) > 0, isEarly)
				for range 2 {
					r.clock.Advance(24 * time.Hour)
					r.checkCallbacks(deliveryWords.Replace(c.callbacks))
					r.checkEffects(key, c.effects)
					if c.status != "" {
						equal(t, "getStatus", r.status(key), c.status)
					}
				}
			})
		}
	}
}

func TestNotEnoughCreditVariable(t *testing.T) {
	contains(t, "body", newTestSandbox(t).sms("Shop.s1", "1002").body, `"variables":["Not enough credit"]`)
}

// 1004 responds after 60 s and is applied then, in all three operations. Until then repeats conflict.
func TestSlowOutcome(t *testing.T) {
	for kind, again := range map[string]string{
		kindCharge: "201", "tpe": "201", "web": "201", kindSMS: "409 SVC0005",
	} {
		t.Run(kind, func(t *testing.T) {
			r := newTestSandbox(t)
			key, first := r.send(kind, "1004")
			r.clock.Advance(59 * time.Second)
			_, flight := r.send(kind, "1004")
			equal(t, "call in flight", flight.summary(), "409 SVC0005")
			equal(t, "Retry-After of a call in flight", flight.header.Get("Retry-After"), "1")
			r.checkEffects(key, 0)
			r.clock.Advance(time.Second)
			equal(t, "first", []any{first.arrived().summary(), r.delays}, []any{"201", []time.Duration{time.Minute}})
			_, repeat := r.send(kind, "1004")
			equal(t, "repeat", repeat.summary(), again)
			equal(t, "Retry-After of a repeat", repeat.header.Get("Retry-After"), "")
			r.clock.Advance(10 * time.Second)
			r.checkEffects(key, 1)
		})
	}
}

// 1008: getStatus reports the final status while the callback is being received. If that fails, the response comes all
// the same, and the callback later.
func TestCallbackBeforeResponse(t *testing.T) {
	for _, channel := range []string{"tpe", "web"} {
		r := newTestSandbox(t)
		during := ""
		r.inbox.before = func() { during = r.status("Shop_1") }
		r.inbox.responseStatuses = []int{503}
		_, response := r.send(channel, "1008")
		checkSummary(t, "response", response, "201")
		equal(t, "getStatus during the callback", during, successful)
		r.checkCallbacks(successful)
		r.clock.Advance(time.Second)
		r.checkCallbacks(successful + " " + successful)
	}
}
