package sandbox

import (
	"fmt"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"mobilegateway/world/operators/kit"
)

// drawing starts a sandbox whose outcomes have a hazard. Every payment is decided after two seconds.
func drawing(t *testing.T, hazard kit.Hazard, w kit.Wrong) *testSandbox {
	return newTestSandbox(t, func(c *Config) {
		c.Draw = func(kind string, _ kit.Keys) kit.Outcome {
			o := kit.Outcome{Result: kit.Paid, DecidesAfter: 2 * time.Second, Reports: []kit.Report{{Result: kit.Paid}}}
			if kind == kindSMS {
				o.Reports[0].Result = deliveredToNetwork
				o.Reports = append(o.Reports, kit.Report{Result: deliveredToTerminal, After: time.Second})
			}
			if hazard == kit.ReversedSuccess {
				o.Result = kit.Refused
			}
			if hazard != "" {
				o = o.With(hazard, w)
			}
			return o
		}
	})
}

func TestHazardsOfReports(t *testing.T) {
	later := kit.Wrong{Claim: kit.Refused, After: 10 * time.Second}
	claim := kit.Wrong{Claim: kit.Refused, After: time.Second, Early: true}
	for _, c := range []struct {
		hazard       kit.Hazard
		wrong        kit.Wrong
		payment, sms string // the reports; N and T are the two delivery statuses
		in           string // the last callback of the payment, or its address
	}{
		{"", kit.Wrong{}, "successful", "N T", `"amount":"1500.00"`},
		{kit.CallbackTwice, kit.Wrong{}, "successful successful", "N N T T", ""},
		{kit.CallbackReordered, kit.Wrong{}, "successful pending", "T N", ""},
		{kit.CallbackOvertaking, kit.Wrong{}, "successful", "N T", ""},
		{kit.CallbackContradicting, later, "successful failed", "", ""},
		{kit.CallbackContradicting, claim, "failed successful", "", ""},
		{kit.CallbackForged, claim, "failed successful", "", ""},
		{kit.CallbackForgedKey, claim, "failed successful", "", ""},
		{kit.CallbackWrongAmount, kit.Wrong{}, "successful", "", `"amount":"91500.00"`},
		{kit.CallbackWrongToken, kit.Wrong{}, "successful", "", "another-payment"},
		{kit.CallbackLate, kit.Wrong{After: time.Minute}, "successful", "N T", ""},
		{kit.CallbackNever, kit.Wrong{}, "", "", ""},
		{kit.OtherSpellings, kit.Wrong{}, "SUCCESS", "N T", ""},
		{kit.ReversedSuccess, kit.Wrong{After: time.Minute}, "successful failed", "", ""},
	} {
		t.Run(string(c.hazard), func(t *testing.T) {
			r := drawing(t, c.hazard, c.wrong)
			checkSummary(t, "response", r.pay("web", "Shop_1", ""), "201")
			r.clock.Advance(2 * time.Second)
			isRespelled := c.hazard == kit.OtherSpellings
			equal(t, "status", r.status("Shop_1"), map[bool]string{false: successful, true: "SUCCESS"}[isRespelled])
			equal(t, "late", c.hazard == kit.CallbackLate || c.payment == "", len(r.inbox.bodies) == 0)
			r.clock.Advance(time.Hour)
			r.checkCallbacks(c.payment)
			isReversed := c.hazard == kit.ReversedSuccess
			equal(t, "the payment failed", r.status("Shop_1") == failed, isReversed)
			r.checkEffects("Shop_1", map[bool]int{false: 1}[isReversed])
			if c.payment != "" {
				contains(t, "callback", r.inbox.bodies[len(r.inbox.bodies)-1], c.in)
				equal(t, "the first address is forged", r.inbox.urls[0] != inboxURL+"/callbacks",
					strings.HasPrefix(string(c.hazard), "forged"))
			}
			if r.inbox.bodies = nil; c.sms != "" {
				r.sms("Shop.s1", "5555")
				r.clock.Advance(time.Hour)
				r.checkCallbacks(strings.NewReplacer("N", deliveredToNetwork, "T", deliveredToTerminal).Replace(c.sms))
			}
		})
	}
}

// A callback without JSON is half of a correct one. A report that overtakes does not wait for one that is retried.
func TestSpoiltAndOvertakingCallbacks(t *testing.T) {
	r := drawing(t, kit.CallbackGarbage, kit.Wrong{})
	r.pay("tpe", "Shop_1", "0700005555")
	r.clock.Advance(time.Minute)
	equal(t, "length", len(r.inbox.bodies[0]), len(r.transactions("Shop_1")[0].Callbacks[0].Body)/2)
	r = drawing(t, kit.CallbackOvertaking, kit.Wrong{})
	r.inbox.responseStatuses = []int{503}
	r.sms("Shop.s1", "5555")
	r.clock.Advance(time.Hour)
	r.checkCallbacks(deliveredToNetwork + " " + deliveredToTerminal + " " + deliveredToNetwork)
}

// The hazards of calls: the first response, the next one, and the effects.
func TestHazardsOfCalls(t *testing.T) {
	for _, c := range []struct {
		hazard       kit.Hazard
		first, again string
		effects      int
	}{
		{"", "201", "201", 1},
		{kit.DeniesApplied, "503 SVC0001", "503 SVC0001", 1},
		{kit.UnseenDuplicate, "409 SVC0005", "409 SVC0005", 0},
	} {
		r := newTestSandbox(t, func(config *Config) {
			config.Hazards.Pick = func(string, kit.Keys, bool) kit.Hazard { return c.hazard }
		})
		equal(t, "first", r.charge("Shop.c1", "5555").summary(), c.first)
		equal(t, "again", r.charge("Shop.c1", "5555").summary(), c.again)
		r.checkEffects("c1", c.effects)
	}
	r := newTestSandbox(t, func(config *Config) { config.Hazards.ForgetsRefusals = true })
	equal(t, "refused", r.charge("Shop.c1", "1001").summary(), "403 POL0253")
	equal(t, "forgotten", r.charge("Shop.c1", "5555").summary(), "201")
	r = newTestSandbox(t, func(config *Config) { config.Hazards.KeyWindow = time.Hour })
	for range 2 {
		equal(t, "in the window", r.charge("Shop.c1", "5555").summary(), "201")
	}
	r.checkEffects("c1", 1)
	r.clock.Advance(time.Hour)
	equal(t, "after the window", r.charge("Shop.c1", "5555").summary(), "201")
	r.checkEffects("c1", 2)
}

// Each effect is reported once, when it happens. A token that is replaced is refused.
func TestAppliedAndTokens(t *testing.T) {
	var applied []string
	r := newTestSandbox(t, func(c *Config) {
		c.Applied = func(e kit.Effect) { applied = append(applied, e.Kind+" "+e.Key+" "+e.Amount) }
	})
	for range 2 {
		r.charge("Shop.c1", "5555")
	}
	r.pay("tpe", "Shop_1", "0700005555")
	equal(t, "before the end", applied, []string{"charge Shop.c1 500"})
	r.clock.Advance(time.Second)
	equal(t, "after the end", applied, []string{"charge Shop.c1 500", "payment Shop_1 1500.00"})
	r.sandbox.SetTokens("next")
	equal(t, "an old token", r.charge("Shop.c2", "5555").summary(), "401 900901")
}

func TestHazardsOfLookups(t *testing.T) {
	for _, c := range []struct {
		hazard      kit.Hazard
		young, old  string
		contentInIt string
	}{
		{kit.NotFoundYet, "404 SVC0002", "200", `"status":"successful"`},
		{kit.NotFound, "404 SVC0002", "404 SVC0002", ""},
		{kit.OtherAmount, "200", "200", `"amount":"11500.00"`},
		{kit.OtherCurrency, "200", "200", `"currency":"XAF"`},
	} {
		r := newTestSandbox(t, func(config *Config) {
			config.Hazards.Pick = func(operation string, _ kit.Keys, _ bool) kit.Hazard {
				return map[string]kit.Hazard{kindLookup: c.hazard}[operation]
			}
		})
		r.pay("tpe", "Shop_1", "0700005555")
		equal(t, "young", r.lookup("Shop_1").summary(), c.young)
		r.clock.Advance(2 * time.Minute)
		old := r.lookup("Shop_1")
		equal(t, "old", old.summary(), c.old)
		contains(t, "old", old.body, c.contentInIt)
	}
}

// A drawn refusal is final, and no number has an outcome of its own.
func TestDrawnRefusal(t *testing.T) {
	r := newTestSandbox(t, func(c *Config) {
		c.Draw = func(kind string, k kit.Keys) kit.Outcome { return kit.Outcome{Refusal: "SVC0270"} }
	})
	for range 2 {
		equal(t, "response", r.charge("Shop.c1", "1005").summary(), "400 SVC0270")
	}
	r.checkEffects("", 0)
}

// In one goroutine, with a network that takes two seconds: the response waits for the callback that comes first, and a
// repeat that overtakes both is served.
func TestOneGoroutine(t *testing.T) {
	c := newClock()
	var events []string
	happened := func(event string) { events = append(events, c.now.Format("05 ")+event) }
	s, err := New(Config{Tokens: []string{"current"}, BaseURL: "http://x", Config: kit.Config{
		Now: c.Now, After: c.After,
		Draw: func(string, kit.Keys) kit.Outcome { return kit.Outcome{Result: kit.Paid, CallbackFirst: true} },
		Post: func(out kit.Outgoing, done func(status int, err error)) {
			happened("callback " + out.Status)
			c.After(2*time.Second, func() { done(200, nil) })
		}}})
	if err != nil {
		t.Fatal(err)
	}
	call := func(name string) {
		request := httptest.NewRequest("POST", "/mobilemoney/v1", nil)
		for name, value := range payHeaders {
			request.Header[strings.ToLower(name)] = []string{value} // as some clients spell them
		}
		request.Header["authorization"] = []string{"Bearer current"}
		response := s.Serve(request, []byte(payJSON("Shop_1", "0700005555", "")))
		s.Deliver(response, func() { happened(fmt.Sprint(name, response.Status)) })
	}
	call("first ")
	c.After(time.Second, func() { call("repeat ") })
	c.Advance(time.Minute)
	equal(t, "events", events, []string{"00 callback successful", "01 repeat 201", "02 first 201"})
	equal(t, "effects", len(s.Effects("Shop_1")), 1)
}

// Every field of the state is hashed, or its tag says why it need not be.
func TestHashKnowsEveryField(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var visit func(name string, typ reflect.Type)
	visit = func(name string, typ reflect.Type) {
		if seen[typ] || typ == reflect.TypeFor[time.Time]() {
			return
		}
		seen[typ] = true
		switch typ.Kind() {
		case reflect.Func, reflect.Chan, reflect.UnsafePointer:
			t.Errorf("%s is a %s: its tag unhashed must give a reason", name, typ)
		case reflect.Pointer, reflect.Slice, reflect.Array:
			visit(name, typ.Elem())
		case reflect.Map:
			visit(name, typ.Key())
			visit(name, typ.Elem())
		case reflect.Struct:
			for field := range typ.Fields() {
				reason, isTagged := field.Tag.Lookup("unhashed")
				if isTagged && len(strings.Fields(reason)) < 2 {
					t.Errorf("%s.%s has the reason %q", typ, field.Name, reason)
				}
				if !isTagged {
					visit(typ.String()+"."+field.Name, field.Type)
				}
			}
		}
	}
	for _, v := range []any{kit.Platform{}, Details{}, pin{}, slot{}, faultPlan{}} {
		visit("", reflect.TypeOf(v))
	}
}

// The hash is that of the state: in any order of the keys, with other random names, and at each step another one.
func TestHash(t *testing.T) {
	steps := []func(r *testSandbox){
		func(r *testSandbox) { r.charge("Shop.c1", "5555") },
		func(r *testSandbox) { r.sms("Shop.s1", "5555") },
		func(r *testSandbox) { r.pay("tpe", "Shop_1", "0700005555") },
	}
	a, b := newTestSandbox(t), startSandbox(t, "", newClock(), &inbox{}, 2)
	hashes := map[uint64]bool{a.sandbox.Hash(): true}
	for i, step := range steps {
		step(a)
		steps[len(steps)-1-i](b)
		hashes[a.sandbox.Hash()] = true
	}
	equal(t, "the hash in another order", b.sandbox.Hash(), a.sandbox.Hash())
	a.inbox.responseStatuses = []int{503}
	for _, d := range []time.Duration{500 * time.Millisecond, 500 * time.Millisecond, time.Second} {
		a.clock.Advance(d)
		hashes[a.sandbox.Hash()] = true
	}
	a.issuePIN("")
	hashes[a.sandbox.Hash()] = true
	a.control("POST /script", `{"key":"x","calls":["cut"]}`, 201, nil)
	hashes[a.sandbox.Hash()] = true
	equal(t, "states with hashes of their own", len(hashes), 9)
}
