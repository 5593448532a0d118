package sandbox

import (
	"fmt"
	"testing"
	"time"
)

// Each row of the outcomes on demand is played at the wire: the first call, a repeat, what is told, what is listed.

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
			for i, want := range []string{c.first, c.again, c.again} {
				if response := r.charge("Shop.c1", c.digits); response.summary() != want {
					t.Errorf("call %d: %s, want %s", i+1, response.summary(), want)
				}
			}
			if effects := r.effects("c1"); len(effects) != c.effects {
				t.Errorf("effects: %+v, want %d", effects, c.effects)
			}
		})
	}
}

func TestPaymentOutcomes(t *testing.T) {
	for _, c := range []struct {
		digits, first, again string
		effectsAtOnce        int
		told, status         string
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
				for i, want := range []string{c.first, c.again} {
					if response := r.pay(channel, "Shop_1", "070000"+c.digits); response.summary() != want {
						t.Errorf("call %d: %s, want %s", i+1, response.summary(), want)
					}
				}
				if effects := r.effects("Shop_1"); len(effects) != c.effectsAtOnce {
					t.Errorf("effects at once: %+v, want %d", effects, c.effectsAtOnce)
				}
				r.clock.Advance(time.Second)
				if statuses := r.inbox.statuses(t); statuses != c.told {
					t.Errorf("told %q, want %q", statuses, c.told)
				}
				if status := r.status("Shop_1"); status != c.status {
					t.Errorf("getStatus %q, want %q", status, c.status)
				}
				r.clock.Advance(48 * time.Hour)
				if effects := r.effects("Shop_1"); len(effects) != c.effects {
					t.Errorf("effects: %+v, want %d", effects, c.effects)
				}
				if status := r.status("Shop_1"); status != c.status {
					t.Errorf("getStatus after two days %q, want %q", status, c.status)
				}
			})
		}
	}
}

func TestSMSOutcomes(t *testing.T) {
	network, terminal := deliveredToNetwork, deliveredToTerminal
	for _, c := range []struct {
		digits, first, again string
		told                 string
		effects              int
	}{
		{"5555", "201", "409 SVC0005", network + " " + terminal, 1},
		{"1001", "201", "409 SVC0005", deliveryImpossible, 0},
		{"1002", "403 POL0001", "403 POL0001", "", 0},
		{"1003", "201", "409 SVC0005", "", 1},
		{"1005", "cut", "409 SVC0005", network + " " + terminal, 1},
		{"1006", "201", "409 SVC0005", fmt.Sprint(network, " ", network, " ", network, " ", terminal, " ", terminal, " ", terminal), 1},
		{"1007", "201", "409 SVC0005", terminal + " " + network, 1},
		{"1008", "201", "409 SVC0005", network + " " + terminal, 1},
		{"1009", "503 SVC0001", "503 SVC0001", "", 0},
		{"1010", "200", "409 SVC0005", network + " " + terminal, 1},
		{"1011", "201", "409 SVC0005", network + " " + terminal, 1},
	} {
		t.Run(c.digits, func(t *testing.T) {
			r := newTestSandbox(t)
			for i, want := range []string{c.first, c.again, c.again} {
				if response := r.sms("Shop.s1", c.digits); response.summary() != want {
					t.Errorf("call %d: %s, want %s", i+1, response.summary(), want)
				}
			}
			if before := r.inbox.statuses(t); (c.digits == "1008") != (before != "") {
				t.Errorf("told before the answer: %q", before)
			}
			r.clock.Advance(5 * time.Second)
			if statuses := r.inbox.statuses(t); statuses != c.told {
				t.Errorf("told %q, want %q", statuses, c.told)
			}
			if effects := r.effects("s1"); len(effects) != c.effects {
				t.Errorf("effects: %+v, want %d", effects, c.effects)
			}
		})
	}
}

func TestNotEnoughCreditVariable(t *testing.T) {
	r := newTestSandbox(t)
	want := `{"requestError":{"policyException":{"messageId":"POL0001","text":"A policy error occurred. Error code is %1","variables":["Not enough credit"]}}}`
	if response := r.sms("Shop.s1", "1002"); response.body != want {
		t.Errorf("%s", response.body)
	}
}

// 1004 answers after 60 s and is applied then, in all three operations; meanwhile the key is in flight.
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
			if flight.summary() != "409 SVC0005" || flight.header.Get("Retry-After") != "1" {
				t.Errorf("in flight: %s, Retry-After %q", flight.summary(), flight.header.Get("Retry-After"))
			}
			if effects := r.effects(c.key); len(effects) != 0 {
				t.Errorf("effects before: %+v", effects)
			}
			r.clock.Advance(time.Second)
			if response := <-first; response.summary() != "201" {
				t.Errorf("first: %s", response.summary())
			}
			again := c.call(r)
			if again.summary() != c.again || again.header.Get("Retry-After") != "" {
				t.Errorf("again: %s, Retry-After %q", again.summary(), again.header.Get("Retry-After"))
			}
			r.clock.Advance(10 * time.Second)
			if effects := r.effects(c.key); len(effects) != 1 {
				t.Errorf("effects: %+v", effects)
			}
		})
	}
}

// 1008: while the callback is being received, the order is final and getStatus already says so.
func TestCallbackBeforeResponse(t *testing.T) {
	for _, channel := range []string{"tpe", "web"} {
		r := newTestSandbox(t)
		during := ""
		r.inbox.before = func() { during = r.status("Shop_1") }
		response := r.pay(channel, "Shop_1", "0700001008")
		if response.status != 201 || during != successful || r.inbox.statuses(t) != successful {
			t.Errorf("%s: answer %s, getStatus during the callback %q, told %q", channel, response.summary(), during, r.inbox.statuses(t))
		}
	}
}

// 1008 with an address that fails: the answer comes all the same, the callback later.
func TestFailedCallbackBeforeResponse(t *testing.T) {
	r := newTestSandbox(t)
	r.inbox.responseStatuses = []int{503}
	if response := r.pay("tpe", "Shop_1", "0700001008"); response.status != 201 {
		t.Fatalf("%s", response.summary())
	}
	r.clock.Advance(time.Second)
	if statuses := r.inbox.statuses(t); statuses != "successful successful" {
		t.Errorf("told %q", statuses)
	}
}

func TestEveryRowHasItsOwnDigits(t *testing.T) {
	for i, r := range outcomeTable() {
		if want := fmt.Sprint(1001 + i); r.digits != want {
			t.Errorf("row %d is %s, want %s", i, r.digits, want)
		}
	}
}
