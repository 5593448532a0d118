package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// These tests check each row of the outcomes on demand on the wire: the first call, a repeat, the callbacks, the
// effects.

func TestChargeOutcomes(t *testing.T) {
	for _, c := range []struct {
		digits, first, again string
		effects              int
	}{
		{"5555", "201", "201", 1},
		{"1001", "403 POL0253", "403 POL0253", 0},
		{"1002", "403 POL1000", "403 POL1000", 0},
		{"1003", "201", "201", 1},
		{"1005", "cut", "201", 1},
		{"1006", "201", "201", 1},
		{"1007", "201", "201", 1},
		{"1008", "201", "201", 1},
		{"1009", "503 SVC0001", "503 SVC0001", 0},
		{"1010", "200", "201", 1},
		{"1011", "201", "201", 1},
		{"12x4", "201", "201", 1},
	} {
		t.Run(c.digits, func(t *testing.T) {
			r := newTestSandbox(t)
			for _, want := range []string{c.first, c.again, c.again} {
				checkSummary(t, "call", r.charge("Shop.c1", c.digits), want)
			}
			r.checkEffects("c1", c.effects)
		})
	}
}

func TestPaymentOutcomes(t *testing.T) {
	for _, c := range []struct {
		digits, first, again string
		effectsAtOnce        int
		callbacks, status    string
		effects              int
	}{
		{"5555", "201", "201", 0, "successful", "successful", 1},
		{"1001", "201", "201", 0, "failed", "failed", 0},
		{"1002", "201", "201", 0, "failed", "failed", 0},
		{"1003", "201", "201", 0, "", "pending", 0},
		{"1005", "cut", "201", 1, "successful", "successful", 1},
		{"1006", "201", "201", 0, "successful successful successful", "successful", 1},
		{"1007", "201", "201", 0, "successful failed", "successful", 1},
		{"1008", "201", "201", 1, "successful", "successful", 1},
		{"1009", "503 SVC0001", "503 SVC0001", 0, "", "404 SVC0002", 0},
		{"1010", "200", "201", 1, "successful", "successful", 1},
		{"1011", "201", "201", 0, "", "successful", 1},
	} {
		for _, channel := range []string{"tpe", "ussd"} {
			t.Run(channel+" "+c.digits, func(t *testing.T) {
				r := newTestSandbox(t)
				for _, want := range []string{c.first, c.again} {
					checkSummary(t, "call", r.pay(channel, "Shop_1", "070000"+c.digits), want)
				}
				r.checkEffects("Shop_1", c.effectsAtOnce)
				r.clock.Advance(time.Second)
				r.checkCallbacks(c.callbacks)
				equal(t, "getStatus", r.status("Shop_1"), c.status)
				r.clock.Advance(48 * time.Hour)
				r.checkEffects("Shop_1", c.effects)
				equal(t, "getStatus", r.status("Shop_1"), c.status)
			})
		}
	}
}

func TestSMSOutcomes(t *testing.T) {
	network, terminal := deliveredToNetwork, deliveredToTerminal
	for _, c := range []struct {
		digits, first, again string
		callbacks            string
		effects              int
	}{
		{"5555", "201", "409 SVC0005", network + " " + terminal, 1},
		{"1001", "201", "409 SVC0005", deliveryImpossible, 0},
		{"1002", "403 POL0001", "403 POL0001", "", 0},
		{"1003", "201", "409 SVC0005", "", 1},
		{"1005", "cut", "409 SVC0005", network + " " + terminal, 1},
		{"1006", "201", "409 SVC0005", fmt.Sprint(network, " ", network, " ", network, " ", terminal, " ", terminal,
			" ", terminal), 1},
		{"1007", "201", "409 SVC0005", terminal + " " + network, 1},
		{"1008", "201", "409 SVC0005", network + " " + terminal, 1},
		{"1009", "503 SVC0001", "503 SVC0001", "", 0},
		{"1010", "200", "409 SVC0005", network + " " + terminal, 1},
		{"1011", "201", "409 SVC0005", network + " " + terminal, 1},
	} {
		t.Run(c.digits, func(t *testing.T) {
			r := newTestSandbox(t)
			for _, want := range []string{c.first, c.again, c.again} {
				checkSummary(t, "call", r.sms("Shop.s1", c.digits), want)
			}
			if before := r.inbox.statuses(t); (c.digits == "1008") != (before != "") {
				t.Errorf("callbacks before the response: %q", before)
			}
			r.clock.Advance(5 * time.Second)
			r.checkCallbacks(c.callbacks)
			r.checkEffects("s1", c.effects)
		})
	}
}

func TestNotEnoughCreditVariable(t *testing.T) {
	r := newTestSandbox(t)
	want := `{"requestError":{"policyException":{"messageId":"POL0001",` +
		`"text":"A policy error occurred. Error code is %1","variables":["Not enough credit"]}}}`
	equal(t, "body", r.sms("Shop.s1", "1002").body, want)
}

// 1004 responds after 60 s and is applied then, in all three operations. Until then repeats conflict.
func TestSlowOutcome(t *testing.T) {
	for _, c := range []struct {
		name, key, again string
		call             func(r *testSandbox) testResponse
	}{
		{"charge", "Shop.k1", "201", func(r *testSandbox) testResponse { return r.charge("Shop.k1", "1004") }},
		{"pay", "Shop_1", "201", func(r *testSandbox) testResponse { return r.pay("tpe", "Shop_1", "0700001004") }},
		{"web", "Shop_1", "201", func(r *testSandbox) testResponse { return r.pay("web", "Shop_1", "0700001004") }},
		{"sms", "Shop.k1", "409 SVC0005", func(r *testSandbox) testResponse { return r.sms("Shop.k1", "1004") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newTestSandbox(t)
			first := r.startCall(func() testResponse { return c.call(r) })
			r.clock.Advance(59 * time.Second)
			flight := c.call(r)
			equal(t, "call in flight", flight.summary(), "409 SVC0005")
			equal(t, "Retry-After of a call in flight", flight.header.Get("Retry-After"), "1")
			r.checkEffects(c.key, 0)
			r.clock.Advance(time.Second)
			checkSummary(t, "first", <-first, "201")
			again := c.call(r)
			equal(t, "repeat", again.summary(), c.again)
			equal(t, "Retry-After of a repeat", again.header.Get("Retry-After"), "")
			r.clock.Advance(10 * time.Second)
			r.checkEffects(c.key, 1)
		})
	}
}

// 1008: getStatus reports the final status while the callback is being received.
func TestCallbackBeforeResponse(t *testing.T) {
	for _, channel := range []string{"tpe", "web"} {
		r := newTestSandbox(t)
		during := ""
		r.inbox.before = func() { during = r.status("Shop_1") }
		response := r.pay(channel, "Shop_1", "0700001008")
		equal(t, "status of the response", response.status, 201)
		equal(t, "getStatus during the callback", during, successful)
		r.checkCallbacks(successful)
	}
}

// 1008 with a failing address: the response comes all the same, the callback later.
func TestFailedCallbackBeforeResponse(t *testing.T) {
	r := newTestSandbox(t)
	r.inbox.responseStatuses = []int{503}
	equal(t, "status of the response", r.pay("tpe", "Shop_1", "0700001008").status, 201)
	r.clock.Advance(time.Second)
	r.checkCallbacks("successful successful")
}

func TestEveryRowHasItsOwnDigits(t *testing.T) {
	var want []string
	for i := range 11 {
		want = append(want, fmt.Sprint(1001+i))
	}
	equal(t, "digits of the outcomes", slices.Sorted(maps.Keys(outcomes)), want)
}
