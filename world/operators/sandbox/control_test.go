package sandbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/msisdn"
)

func keysOf(effects []Effect) string {
	var keys []string
	for _, e := range effects {
		keys = append(keys, e.Kind+" "+e.Key)
	}
	return strings.Join(keys, ", ")
}

func TestEffectsAreFoundByEitherForm(t *testing.T) {
	r := newTestSandbox(t)
	long := strings.Repeat("k", 80)
	hash := ledger.UpstreamKey("Shop", long, "")
	hashedReference := ledger.UpstreamKey("Other", "", long)
	for _, key := range []string{"Shop.abc", "Other.abc", "Shop~ref-7", hash, hashedReference} {
		equal(t, "status of the response", r.charge(key, "5555").status, 201)
	}
	r.pay("tpe", "Shop_1", "0700005555")
	r.sms("Shop_1", "5555")
	r.sms("Shop.Shop_1", "5555")
	r.clock.Advance(time.Second)
	for _, c := range []struct{ key, want string }{
		{"abc", "charge Shop.abc, charge Other.abc"},
		{"Shop.abc", "charge Shop.abc"},
		{"Other.abc", "charge Other.abc"},
		{"ref-7", "charge Shop~ref-7"},
		{"Shop~ref-7", "charge Shop~ref-7"},
		{long, "charge " + hash + ", charge " + hashedReference},
		{"Shop." + long, "charge " + hash},
		{hash, "charge " + hash},
		{"Shop_1", "payment Shop_1, sms Shop_1, sms Shop.Shop_1"},
		{"nothing", ""},
	} {
		if got := keysOf(r.effects(c.key)); got != c.want {
			t.Errorf("%.20s: %s, want %s", c.key, got, c.want)
		}
	}
	if all := r.effects(""); len(all) != 8 {
		t.Errorf("all: %s", keysOf(all))
	}
}

func TestEffectsResponse(t *testing.T) {
	r := newTestSandbox(t)
	equal(t, "body", r.do("GET", "/sandbox/v1/effects?key=none", "", nil).body, "[]")
	r.charge("Shop.c1", "5555")
	want := `[{"kind":"charge","key":"Shop.c1","amount":"500","currency":"XOF","at":"2026-11-21T10:00:00Z"}]`
	equal(t, "body", r.do("GET", "/sandbox/v1/effects?key=c1", "", nil).body, want)
	r.sms("Shop.s1", "5555")
	want = `[{"kind":"sms","key":"Shop.s1","amount":"","currency":"","at":"2026-11-21T10:00:00Z","callback_url":"` +
		r.inbox.server.URL + `/receipts"}]`
	equal(t, "body", r.do("GET", "/sandbox/v1/effects?key=Shop.s1", "", nil).body, want)
}

func TestScripts(t *testing.T) {
	r := newTestSandbox(t)
	r.control("POST /script",
		`{"key":"c1","calls":["lost","503","cut","garbage","html","empty","500","redirect","429","ok"]}`, 201, nil)
	for _, want := range []string{"cut", "503 SVC0001", "cut", "200", "200", "201", "500", "302", "429 900800", "201",
		"201"} {
		checkSummary(t, "call", r.charge("Shop.c1", "5555"), want)
	}
	r.checkEffects("c1", 1)
	view := r.transactions("c1")[0]
	equal(t, "number of calls", view.Calls, 11)
	equal(t, "response to the first call", view.CallLog[0].Response, "cut")
	equal(t, "response to the last call", view.CallLog[10].Response, "201")
	equal(t, "state", view.State, charged)
	var left []script
	if r.control("GET /script", "", 200, &left); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestScriptedResponseModes(t *testing.T) {
	for _, c := range []struct {
		word, first, again string
		effects            int
	}{
		{"500-applied", "500", "201", 1},
		{"503-applied", "503 SVC0001", "201", 1},
		{"cut-unapplied", "cut", "201", 1},
		{"POL1000", "403 POL1000", "403 POL1000", 0},
		{"POL0001", "403 POL0001", "403 POL0001", 0},
		{"SVC0270", "400 SVC0270", "400 SVC0270", 0},
		{"401", "401 900901", "201", 1},
		{"400", "400 SVC0002", "201", 1},
		{"409", "409 SVC0005", "201", 1},
	} {
		t.Run(c.word, func(t *testing.T) {
			r := newTestSandbox(t)
			r.control("POST /script", fmt.Sprintf(`{"key":"Shop.c1","kind":"charge","calls":[%q]}`, c.word), 201, nil)
			for _, want := range []string{c.first, c.again} {
				checkSummary(t, "response", r.charge("Shop.c1", "5555"), want)
			}
			r.checkEffects("c1", c.effects)
		})
	}
}

// A script overrules the digits, a payment's refusal is final, and getStatus has scripts of its own.
func TestScriptKinds(t *testing.T) {
	r := newTestSandbox(t)
	r.control("POST /script", `{"key":"Shop_1","calls":["ok"]}`, 201, nil)
	r.control("POST /script", `{"key":"Shop_1","kind":"getstatus","calls":["503","garbage","ok"]}`, 201, nil)
	equal(t, "status of the response", r.pay("tpe", "Shop_1", "0700001005").status, 201)
	r.clock.Advance(time.Second)
	for i, want := range []string{"503 SVC0001", "200", "200", "200"} {
		response := r.lookup("Shop_1")
		if response.summary() != want || (i >= 2) != strings.Contains(response.body, `"status":"successful"`) {
			t.Errorf("lookup %d: %s %s", i+1, response.summary(), response.body)
		}
	}
	r.control("POST /script", `{"key":"Shop_2","kind":"payment","calls":["POL0253"]}`, 201, nil)
	if response := r.pay("tpe", "Shop_2", "0700005555"); response.summary() != "403 POL0253" ||
		r.status("Shop_2") != failed {
		t.Errorf("%s %s", response.summary(), r.status("Shop_2"))
	}
	r.control("POST /script", `{"key":"x","calls":["cut"]}`, 201, nil)
	r.control("DELETE /script?key=x", "", 204, nil)
	equal(t, "status of the response", r.charge("Shop.x", "5555").status, 201)
}

func TestSlowScripts(t *testing.T) {
	r := newTestSandbox(t)
	r.control("POST /script", `{"key":"c1","calls":["slow"]}`, 201, nil)
	r.control("POST /script", `{"key":"Shop_1","kind":"getstatus","calls":["slow"]}`, 201, nil)
	first := r.startCall(func() testResponse { return r.charge("Shop.c1", "5555") })
	lookup := r.startCall(func() testResponse { return r.lookup("Shop_1") })
	r.clock.Advance(time.Minute)
	if a, b := <-first, <-lookup; a.status != 201 || b.summary() != "404 SVC0002" {
		t.Errorf("%s, %s", a.summary(), b.summary())
	}
}

func TestControlRefusals(t *testing.T) {
	r := newTestSandbox(t)
	r.control("PUT /steering", `{"duplicate":1}`, 200, nil)
	for _, c := range []struct{ call, body string }{
		{"POST /script", `{"key":"c1","calls":["fine"]}`},
		{"POST /script", `{"key":"c1","calls":["slow-applied"]}`},
		{"POST /script", `{"key":"c1","calls":[]}`},
		{"POST /script", `{"calls":["ok"]}`},
		{"POST /script", `{"key":"c1","kind":"x","calls":["ok"]}`},
		{"POST /script", `not json`},
		{"PUT /steering", `{"delay":1.5}`},
		{"PUT /steering", `{"delay":-1}`},
		{"PUT /steering", `{"max_delay_ms":-1}`},
		{"PUT /steering", `{"nonsense":1}`},
		{"PUT /steering", ""},
		{"PUT /steering", " \n"},
		{"PUT /steering", `null`},
		{"PUT /steering", `[]`},
		{"PUT /steering", `7`},
		{"PUT /steering", `{"delay":0.5}garbage`},
		{"PUT /steering", `{"delay":0.5}{"delay":0}`},
		{"PUT /steering", `{"delay":0.5}}`},
		{"POST /tests", `{}garbage`},
		{"POST /tests", `"x"`},
		{"POST /slots", `{"merchant":"Shop"},`},
		{"POST /script", `{"key":"c1","calls":["ok"]} {}`},
		{"POST /settle", `{"key":"Shop_1","status":"failed"}x`},
		{"POST /tests", strings.Repeat(" ", maxBodyBytes) + `{}`},
		{"POST /slots", `{}`},
		{"POST /slots", `{"merchant":"Shop","starts_at":"2026-01-01T00:00:00Z","ends_at":"2026-01-02T00:00:00Z"}`},
		{"POST /slots", `{"merchant":"Shop","starts_at":"2026-11-21T08:00:00Z","ends_at":"2026-11-21T10:00:00Z"}`},
		{"POST /tests", `{"country":"FR"}`},
		{"POST /slots", `{"merchant":"` + strings.Repeat("x", 101) + `"}`},
		{"POST /tests", `{"msisdn":"12x"}`},
		{"POST /tests", `{"order_id":"` + strings.Repeat("1", 31) + `"}`},
		{"POST /settle", `{"key":"Shop_1","status":"expired"}`},
	} {
		r.control(c.call, c.body, 400, nil)
	}
	var v FaultSettings
	if r.control("GET /steering", "", 200, &v); v.Duplicate != 1 {
		t.Errorf("a refused body changes the steering: %+v", v)
	}
	for _, body := range []string{"", " ", "null", "{}", " {} \n"} { // all fields are optional
		r.control("POST /tests", body, 200, nil)
	}
	r.control("PUT /steering", " {} \n", 200, nil)
	r.control("POST /settle", `{"key":"Shop_1","status":"failed"}`, 404, nil)
	r.control("DELETE /slots/none", "", 404, nil)
	for _, c := range []struct{ method, path string }{{"GET", "/sandbox/v1/nothing"}, {"GET", "/sandbox"},
		{"PUT", "/sandbox/v1/slots"}} {
		if response := r.do(c.method, c.path, "", nil); response.status != 404 ||
			!strings.HasPrefix(response.body, `{"error":"`) {
			t.Errorf("%s %s: %d %s", c.method, c.path, response.status, response.body)
		}
	}
}

func TestSlotsDoNotOverlap(t *testing.T) {
	r := newTestSandbox(t)
	r.control("POST /slots", `{"merchant":"Shop","starts_at":"2026-12-01T10:00:00+01:00"}`, 201, nil)
	r.control("POST /slots", `{"merchant":"Other","starts_at":"2026-12-01T09:59:00Z","ends_at":"2026-12-01T11:00:00Z"}`,
		409, nil)
	r.control("POST /slots", `{"merchant":"Other","starts_at":"2026-12-01T10:00:00Z"}`, 201, nil)
	var slots []slot
	if r.control("GET /slots", "", 200, &slots); len(slots) != 2 {
		t.Errorf("%+v", slots)
	}
}

// The number of PINs and of slots is limited.
func TestTestPINAndSlotLimits(t *testing.T) {
	r := newTestSandbox(t)
	now := r.sandbox.now()
	for i := range maxPINs {
		code := fmt.Sprintf("%06d", i)
		r.sandbox.pins[code] = &pin{PIN: code, ExpiresAt: now}
	}
	r.control("POST /tests", "", 409, nil)
	r.clock.Advance(pinRetention)
	r.control("POST /tests", "", 200, nil)
	for i := range maxSlots {
		over := now.Add(time.Duration(i-maxSlots+2) * time.Hour)
		r.sandbox.slots = append(r.sandbox.slots, &slot{ID: fmt.Sprint(i), StartsAt: over.Add(-time.Hour),
			EndsAt: over})
	}
	r.clock.Advance(-pinRetention)
	r.control("POST /slots", `{"merchant":"Shop","starts_at":"2026-12-01T10:00:00Z"}`, 201, nil)
	equal(t, "ended slots are removed at the limit", len(r.sandbox.slots), 2)
	for i := range maxSlots - 2 {
		r.sandbox.slots = append(r.sandbox.slots, &slot{ID: fmt.Sprint(i), StartsAt: now.Add(-time.Hour),
			EndsAt: now.Add(time.Hour)})
	}
	r.control("POST /slots", `{"merchant":"Shop","starts_at":"2026-12-01T12:00:00Z"}`, 409, nil)
}

func TestFaultSettings(t *testing.T) {
	r := newTestSandbox(t)
	var v FaultSettings
	if r.control("GET /steering", "", 200, &v); v != (FaultSettings{MaxDelayMS: defaultMaxDelayMS}) {
		t.Errorf("%+v", v)
	}
	run := func(prefix string) string {
		r.control("PUT /steering", `{"seed":7,"lost_answer":0.3,"unavailable":0.3}`, 200, nil)
		var texts []string
		for i := range 30 {
			texts = append(texts, r.charge(fmt.Sprint("Shop.", prefix, i), "5555").summary())
		}
		return strings.Join(texts, " ")
	}
	first, second := run("a"), run("b")
	equal(t, "faults with the same seed", second, first)
	contains(t, "responses", first, "cut", "503", "201")
	r.control("PUT /steering", `{}`, 200, nil)
	for i := range 30 {
		key := fmt.Sprint("Shop.a", i)
		equal(t, "repeat without faults: status of the response", r.charge(key, "5555").status, 201)
		r.checkEffects(key, 1)
	}
}

func TestInjectedCallbackFaults(t *testing.T) {
	r := newTestSandbox(t)
	r.control("PUT /steering", `{"duplicate":1,"reorder":1}`, 200, nil)
	if response := r.sms("Shop.s1", "5555"); response.status != 201 {
		t.Fatal(response.summary())
	}
	if statuses, want := r.inbox.statuses(t), strings.Join([]string{deliveredToTerminal, deliveredToTerminal,
		deliveredToNetwork, deliveredToNetwork}, " "); statuses != want {
		t.Errorf("callbacks %q, want %q", statuses, want)
	}
	r.pay("web", "Shop_1", "")
	equal(t, "getStatus", r.status("Shop_1"), pending)
}

func TestInjectedDelay(t *testing.T) {
	r := newTestSandbox(t)
	r.control("PUT /steering", `{"delay":1,"max_delay_ms":500}`, 200, nil)
	response := r.startCall(func() testResponse { return r.charge("Shop.c1", "5555") })
	r.checkEffects("c1", 1)
	r.clock.Advance(500 * time.Millisecond)
	equal(t, "status of the response", (<-response).status, 201)
}

func TestPostFinalStatus(t *testing.T) {
	r := newTestSandbox(t)
	r.pay("tpe", "Shop_1", "0700001003")
	var view transactionView
	r.control("POST /settle", `{"key":"Shop_1","status":"failed","description":"Wallet not found"}`, 200, &view)
	equal(t, "state", view.State, failed)
	contains(t, "getStatus", r.lookup("Shop_1").body, `"statusDescription":"Wallet not found"`)
	equal(t, "getStatus", r.status("Shop_1"), failed)
	r.control("POST /settle", `{"key":"Shop_1","status":"successful"}`, 200, nil)
	r.clock.Advance(0)
	r.checkCallbacks("failed successful")
	contains(t, "callback", r.inbox.bodies[0], `"statusDescription":"Wallet not found"`)
	equal(t, "getStatus", r.status("Shop_1"), failed)
	r.checkEffects("Shop_1", 0)
	r.control("POST /settle", `{"key":"Shop_1","status":"successful","force":true,"silent":true}`, 200, nil)
	r.clock.Advance(time.Minute)
	r.checkCallbacks("failed successful")
	equal(t, "getStatus", r.status("Shop_1"), successful)
	r.checkEffects("Shop_1", 1)
}

// A callback without a 2xx response comes again after 1, 2, 4 ... s, ten times in all. The next one waits for it.
func TestCallbackRetries(t *testing.T) {
	r := newTestSandbox(t)
	r.inbox.responseStatuses = []int{503, 404, 302}
	r.pay("tpe", "Shop_1", "0700001007")
	var statuses []string
	for range 5 {
		r.clock.Advance(time.Second)
		statuses = append(statuses, fmt.Sprint(len(r.inbox.bodies)))
	}
	if got := strings.Join(statuses, " "); got != "1 2 2 3 3" {
		t.Errorf("after each second: %s", got)
	}
	r.clock.Advance(time.Hour)
	r.checkCallbacks("successful successful successful successful failed")
	callbacks := r.transactions("Shop_1")[0].Callbacks
	equal(t, "number of callbacks", len(callbacks), 2)
	equal(t, "attempts of the first callback", len(callbacks[0].Attempts), 4)
	equal(t, "a redirect is not followed", callbacks[0].Attempts[2].Status, 302)
	equal(t, "outcome of the second callback", callbacks[1].Outcome, callbackDelivered)
}

func TestCallbackIsGivenUp(t *testing.T) {
	r := newTestSandbox(t)
	r.pay("tpe", "Shop_1", "0700005555")
	r.inbox.server.Close()
	r.clock.Advance(time.Hour)
	c := r.transactions("Shop_1")[0].Callbacks[0]
	if len(c.Attempts) != 10 || c.Outcome != callbackGivenUp || c.Attempts[0].Error == "" ||
		strings.Contains(c.Attempts[0].Error, "/callbacks") {
		t.Errorf("%+v", c)
	}
}

func TestDummyNumbers(t *testing.T) {
	r := newTestSandbox(t)
	for _, country := range market.All() {
		p := r.issuePIN(fmt.Sprintf(`{"country":%q}`, strings.ToLower(country.Alpha2)))
		national, ok := strings.CutPrefix(p.MSISDN, "+"+country.CallingCode)
		if !ok || len(national) != country.NationalLengths[0] || msisdn.LastFourDigits(p.MSISDN) < "2000" ||
			len(p.PIN) != 6 {
			t.Errorf("%s: %+v", country.Alpha2, p)
		}
	}
}
