package sandbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/world/operators/kit"
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
		inboxURL + `/receipts"}]`
	equal(t, "body", r.do("GET", "/sandbox/v1/effects?key=Shop.s1", "", nil).body, want)
}

// A statement has the money that moved, and no SMS.
func TestStatement(t *testing.T) {
	r := newTestSandbox(t)
	r.charge("Shop.c1", "5555")
	r.pay("tpe", "Shop_1", "0700005555")
	r.sms("Shop.s1", "5555")
	r.clock.Advance(time.Second)
	lines := strings.Split(r.do("GET", "/sandbox/v1/statement", "", nil).body, "\n")
	equal(t, "lines", len(lines), 4)
	equal(t, "heading", lines[0], "reference,order_id,amount,currency,status,time,fee,payer")
	for i, want := range []string{",Shop.c1,500,XOF,paid,2026-11-21T10:00:00Z,,", ",Shop_1,"} {
		if !strings.Contains(lines[1+i], want) {
			t.Errorf("line %d is %q, want %s", i+2, lines[1+i], want)
		}
	}
	for operator, want := range map[string]int{"sandbox": 3, "orange": 3, "mtn": 2} {
		lines := strings.Split(r.do("GET", "/sandbox/v1/statement?operator="+operator, "", nil).body, "\n")
		equal(t, "lines of "+operator, len(lines), want)
	}
}

// A charge counts minor units in some countries. A statement has its currency.
func TestStatementAmount(t *testing.T) {
	for want, e := range map[string]Effect{
		"0.15": {Kind: kindCharge, Amount: "15.00", Currency: "USD"},
		"15":   {Kind: kindPayment, Amount: "15", Currency: "USD"},
		"500":  {Kind: kindCharge, Amount: "500", Currency: "XOF"},
	} {
		equal(t, "amount", statementAmount(e), want)
	}
}

// Each word of a script: the response, the next call, and the effects.
func TestScripts(t *testing.T) {
	for _, c := range []struct {
		words, responses string // the last response is that of a call without a script
		effects          int
	}{
		{"lost 503 cut garbage html empty 500 redirect 429 ok",
			"cut, 503 SVC0001, cut, 200, 200, 201, 500, 302, 429 900800, 201, 201", 1},
		{"500-applied", "500, 201", 1},
		{"503-applied", "503 SVC0001, 201", 1},
		{"cut-unapplied", "cut, 201", 1},
		{"POL1000", "403 POL1000, 403 POL1000", 0},
		{"POL0001", "403 POL0001, 403 POL0001", 0},
		{"SVC0270", "400 SVC0270, 400 SVC0270", 0},
		{"401 400 409 down", "401 900901, 400 SVC0002, 409 SVC0005, 503 SVC0001, 201", 1},
	} {
		t.Run(c.words, func(t *testing.T) {
			r := newTestSandbox(t)
			words, responses := strings.Fields(c.words), strings.Split(c.responses, ", ")
			r.control("POST /script", string(marshal(script{"c1", kindCharge, words})), 201, nil)
			for i, want := range responses {
				checkSummary(t, "call", r.charge("Shop.c1", "5555"), want)
				equal(t, "logged call", r.transactions("c1")[0].CallLog[i].Response, want[:3])
			}
			r.checkEffects("c1", c.effects)
			equal(t, "number of calls", r.transactions("c1")[0].Calls, len(responses))
			equal(t, "scripts that are left", r.do("GET", "/sandbox/v1/script", "", nil).body, "[]")
		})
	}
}

// A script overrules the digits, a payment's refusal is final, and getStatus has scripts of its own.
func TestScriptKinds(t *testing.T) {
	r := newTestSandbox(t)
	r.control("POST /script", `{"key":"Shop_1","calls":["ok"]}`, 201, nil)
	r.control("POST /script", `{"key":"Shop_1","kind":"getstatus","calls":["503","garbage","slow"]}`, 201, nil)
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
		{"PUT /steering", `null`},
		{"PUT /steering", `[]`},
		{"PUT /steering", `{"delay":0.5}{"delay":0}`},
		{"POST /tests", `{}garbage`},
		{"POST /tests", `"x"`},
		{"POST /tests", strings.Repeat(" ", kit.MaxBodyBytes) + `{}`},
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
	now := r.sandbox.Now()
	for i := range maxPINs {
		code := fmt.Sprintf("%06d", i)
		r.sandbox.pins.byCode[code] = &pin{PIN: code, ExpiresAt: now}
	}
	r.control("POST /tests", "", 409, nil)
	r.clock.Advance(pinRetention)
	r.control("POST /tests", "", 200, nil)
	calendar := r.sandbox.calendar
	add := func(i int, end time.Time) {
		calendar.slots = append(calendar.slots, &slot{ID: fmt.Sprint(i), StartsAt: end.Add(-time.Hour), EndsAt: end})
	}
	for i := range maxSlots {
		add(i, now.Add(time.Duration(i-maxSlots+2)*time.Hour))
	}
	r.clock.Advance(-pinRetention)
	r.control("POST /slots", `{"merchant":"Shop","starts_at":"2026-12-01T10:00:00Z"}`, 201, nil)
	equal(t, "ended slots are removed at the limit", len(calendar.slots), 2)
	for i := range maxSlots - 2 {
		add(i, now.Add(time.Hour))
	}
	r.control("POST /slots", `{"merchant":"Shop","starts_at":"2026-12-01T12:00:00Z"}`, 409, nil)
}

func TestInjectedFaults(t *testing.T) {
	r := newTestSandbox(t)
	var v FaultSettings
	if r.control("GET /steering", "", 200, &v); v != (FaultSettings{MaxDelayMS: defaultMaxDelayMS}) {
		t.Errorf("%+v", v)
	}
	r.control("PUT /steering", `{"duplicate":1,"reorder":1,"delay":1,"max_delay_ms":500}`, 200, nil)
	checkSummary(t, "SMS", r.sms("Shop.s1", "5555"), "201")
	r.checkEffects("s1", 1)
	r.checkCallbacks(deliveryWords.Replace("T T N N"))
	r.pay("web", "Shop_1", "")
	equal(t, "getStatus", r.status("Shop_1"), pending)
	if len(r.delays) != 2 || max(r.delays[0], r.delays[1]) > 500*time.Millisecond {
		t.Errorf("delays %v", r.delays)
	}
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
	for i, want := range []int{1, 2, 2, 3, 3} {
		r.clock.Advance(time.Second)
		equal(t, fmt.Sprintf("callbacks after second %d", i+1), len(r.inbox.bodies), want)
	}
	r.clock.Advance(time.Hour)
	r.checkCallbacks("successful successful successful successful failed")
	callbacks := r.transactions("Shop_1")[0].Callbacks
	equal(t, "attempts of the first callback", len(callbacks[0].Attempts), 4)
	equal(t, "outcome of the second callback", callbacks[1].Outcome, kit.CallbackDelivered)
	r.inbox.isDown = true
	r.pay("tpe", "Shop_2", "0700005555")
	r.clock.Advance(time.Hour)
	lost := r.transactions("Shop_2")[0].Callbacks[0]
	equal(t, "a lost callback", []any{len(lost.Attempts), lost.Outcome, lost.Attempts[0].Error},
		[]any{10, kit.CallbackGivenUp, "refused"})
}

func TestDummyNumbers(t *testing.T) {
	r := newTestSandbox(t)
	for _, country := range market.All() {
		p := r.issuePIN(fmt.Sprintf(`{"country":%q}`, strings.ToLower(country.Alpha2)))
		national, ok := strings.CutPrefix(p.MSISDN, "+"+country.CallingCode)
		if !ok || len(national) != country.NationalLengths[0] || p.MSISDN[len(p.MSISDN)-4:] < "2000" ||
			len(p.PIN) != 6 {
			t.Errorf("%s: %+v", country.Alpha2, p)
		}
	}
}
