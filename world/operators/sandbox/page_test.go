package sandbox

import (
	"encoding/json"
	"html"
	"net/url"
	"strings"
	"testing"
	"time"
)

// webPayment is the response on the web channel.
type webPayment struct {
	*testSandbox
	webPaymentResponse
}

func (r *testSandbox) payWeb(order, msisdn string) webPayment {
	r.Helper()
	return r.payLang(order, "fr", msisdn)
}

// payLang makes a web payment in a language.
func (r *testSandbox) payLang(order, lang, msisdn string) webPayment {
	r.Helper()
	return r.postWeb(payJSON(order, msisdn, ""), lang)
}

// postWeb posts the body of a web payment, which must succeed.
func (r *testSandbox) postWeb(body, lang string) webPayment {
	r.Helper()
	response := r.do("POST", "/mobilemoney/v1", body, withHeaders(payHeaders, "channel", "web", "lang", lang))
	web := webPayment{testSandbox: r}
	if err := json.Unmarshal([]byte(response.body), &web.webPaymentResponse); err != nil || response.status != 201 {
		r.Fatalf("%d %v", response.status, err)
	}
	return web
}

// path is payment_url on this server; after a restart the page has moved with it.
func (w webPayment) path() string {
	u, err := url.Parse(w.PaymentURL)
	if err != nil {
		w.Fatal(err)
	}
	return u.Path
}

// get opens the page.
func (w webPayment) get() testResponse { return w.do("GET", w.path(), "", nil) }

type issuedPIN struct {
	PIN       string    `json:"pin"`
	MSISDN    string    `json:"msisdn"`
	ExpiresAt time.Time `json:"expires_at"`
}

func (r *testSandbox) issuePIN(body string) issuedPIN {
	r.Helper()
	var p issuedPIN
	r.control("POST /tests", body, 200, &p)
	return p
}

func (r *testSandbox) post(path string, values url.Values) testResponse {
	r.Helper()
	return r.do("POST", path, values.Encode(), map[string]string{"Content-Type": "application/x-www-form-urlencoded"})
}

func (r *testSandbox) confirm(path, msisdn, code string) testResponse {
	r.Helper()
	return r.post(path, url.Values{"action": {"confirm"}, "msisdn": {msisdn}, "pin": {code}})
}

const (
	returnURL = "https://shop.example/back?a=1&b=2"
	cancelURL = "https://shop.example/cancel"
)

func TestPageConfirm(t *testing.T) {
	r := newTestSandbox(t)
	web := r.payWeb("Shop_1", "")
	p := r.issuePIN("")
	response := r.confirm(web.path(), p.MSISDN, p.PIN)
	if response.status != 303 || response.header.Get("Location") != returnURL {
		t.Fatalf("%d to %q", response.status, response.header.Get("Location"))
	}
	r.clock.Advance(0)
	r.checkCallbacks(successful)
	var callback paymentPayload
	if err := json.Unmarshal([]byte(r.inbox.bodies[0]), &callback); err != nil {
		t.Fatal(err)
	}
	equal(t, "notif_token of the callback", callback.NotifToken, web.NotifToken)
	equal(t, "user_msisdn of the callback", callback.UserMSISDN, p.MSISDN)
	equal(t, "type of the callback", callback.Meta.Type, "payment-notif")
	r.checkEffects("Shop_1", 1)
	equal(t, "getStatus", r.status("Shop_1"), successful)
	for range 2 { // a second click changes nothing
		equal(t, "again", r.confirm(web.path(), p.MSISDN, p.PIN).status, 303)
	}
	done := r.do("GET", web.path(), "", nil)
	if done.status != 200 || !strings.Contains(done.body, html.EscapeString(returnURL)) ||
		strings.Contains(done.body, "<form") {
		t.Errorf("done page: %d %s", done.status, done.body)
	}
	r.clock.Advance(time.Hour)
	r.checkCallbacks(successful)
}

func TestPageCancel(t *testing.T) {
	r := newTestSandbox(t)
	r.pay("web", "Shop_1", "0700001005") // applied, and cut
	web := r.payWeb("Shop_1", "0700001005")
	for range 2 {
		response := r.post(web.path(), url.Values{"action": {"cancel"}})
		if response.status != 303 || response.header.Get("Location") != cancelURL {
			t.Fatalf("%d to %q", response.status, response.header.Get("Location"))
		}
	}
	r.clock.Advance(time.Hour)
	r.checkCallbacks(cancelled)
	equal(t, "getStatus", r.status("Shop_1"), cancelled)
	r.checkEffects("Shop_1", 0)
}

// A payment whose page is not confirmed in time has no effect, though its creation was applied.
func TestUnconfirmedPageExpires(t *testing.T) {
	r := newTestSandbox(t)
	r.pay("web", "Shop_1", "0700001005") // applied, and cut
	r.checkEffects("Shop_1", 1)
	r.clock.Advance(defaultPageLifetime)
	r.checkEffects("Shop_1", 0)
	equal(t, "number of effects of an expired payment", r.transactions("Shop_1")[0].Effects, 0)
}

// The number that is typed selects the outcome where the request has none. A number of the request selects it for any
// typed number, and has had its effect on the first response already. Without the payer's number a faulty first
// response has no effect yet. first is the response to the request, page and again those of two confirmations.
func TestPageOutcomes(t *testing.T) {
	const none, other = "", "5555"
	for _, c := range []struct {
		requested, typed, script string
		first, page, again       string
		callbacks, status        string
		before, effects          int
	}{
		{none, "5555", "ok", "201", "303", "303", "successful", "successful", 0, 1},
		{none, "1001", "ok", "201", "303", "303", "failed", "failed", 0, 0},
		{none, "1002", "ok", "201", "303", "303", "failed", "failed", 0, 0},
		{none, "1003", "ok", "201", "303", "303", "", "pending", 0, 0},
		{none, "1005", "ok", "201", "cut", "303", "successful", "successful", 0, 1},
		{none, "1006", "ok", "201", "303", "303", "successful successful successful", "successful", 0, 1},
		{none, "1007", "ok", "201", "303", "303", "successful failed", "successful", 0, 1},
		{none, "1008", "ok", "201", "303", "303", "successful", "successful", 0, 1},
		{none, "1009", "ok", "201", "503", "503", "", "pending", 0, 0},
		{none, "1010", "ok", "201", "200", "303", "successful", "successful", 0, 1},
		{none, "1011", "ok", "201", "303", "303", "", "successful", 0, 1},
		{"1001", other, "", "201", "303", "303", "failed", "failed", 0, 0},
		{"1003", other, "", "201", "303", "303", "", "pending", 0, 0},
		{"1005", other, "", "cut", "303", "303", "successful", "successful", 1, 1},
		{"1007", other, "", "201", "303", "303", "successful failed", "successful", 0, 1},
		{"1008", other, "", "201", "303", "303", "successful", "successful", 1, 1},
		{"1010", other, "", "200", "303", "303", "successful", "successful", 1, 1},
		{"1011", other, "", "201", "303", "303", "", "successful", 0, 1},
		{none, "5555", "cut", "cut", "303", "303", "successful", "successful", 0, 1},
		{none, "1001", "cut", "cut", "303", "303", "failed", "failed", 0, 0},
		{none, "1003", "cut", "cut", "303", "303", "", "pending", 0, 0},
	} {
		t.Run(c.requested+" "+c.typed+" "+c.script, func(t *testing.T) {
			r, msisdn := newTestSandbox(t), ""
			if c.requested != none {
				msisdn = "070000" + c.requested
			}
			if c.script != "" {
				r.control("POST /script", string(marshal(script{"Shop_1", kindPayment, []string{c.script}})), 201, nil)
			}
			checkSummary(t, "request", r.pay("web", "Shop_1", msisdn), c.first)
			web := r.payWeb("Shop_1", msisdn)
			r.clock.Advance(23 * time.Hour)
			r.checkEffects("Shop_1", c.before)
			p := r.issuePIN("")
			for _, want := range []string{c.page, c.again} {
				checkSummary(t, "page", r.confirm(web.path(), "+225 07-00-00 "+c.typed, p.PIN), want)
			}
			r.clock.Advance(time.Minute)
			r.checkCallbacks(c.callbacks)
			equal(t, "getStatus", r.status("Shop_1"), c.status)
			r.checkEffects("Shop_1", c.effects)
		})
	}
}

// A slow confirmation ends after 60 seconds, and redirects by the final status.
func TestSlowPage(t *testing.T) {
	for _, isCancelled := range []bool{false, true} {
		r := newTestSandbox(t)
		web, p := r.payWeb("Shop_1", ""), r.issuePIN("")
		first := r.confirm(web.path(), "0700001004", p.PIN)
		r.clock.Advance(59 * time.Second)
		r.checkPage("meanwhile", r.post(web.path(), url.Values{"action": {"cancel"}}), 409, "Paiement en cours")
		equal(t, "getStatus", r.status("Shop_1"), pending)
		address, effects := returnURL, 1
		if isCancelled {
			r.control("POST /settle", `{"key":"Shop_1","status":"cancelled"}`, 200, nil)
			address, effects = cancelURL, 0
		}
		r.clock.Advance(time.Second)
		arrived := first.arrived()
		equal(t, "response", []any{arrived.status, arrived.header.Get("Location"), r.delays},
			[]any{303, address, []time.Duration{time.Minute}})
		r.checkEffects("Shop_1", effects)
	}
}

// A PIN pays with any number. TestPageStatuses has the PINs that are refused.
func TestPINs(t *testing.T) {
	r := newTestSandbox(t)
	web, p := r.payWeb("Shop_1", ""), r.issuePIN(`{"msisdn":"+2250700004444"}`)
	if p.MSISDN != "+2250700004444" || !p.ExpiresAt.Equal(r.clock.Now().Add(15*time.Minute)) {
		t.Errorf("%+v", p)
	}
	equal(t, "bad number", r.confirm(web.path(), "x", p.PIN).status, 422)
	equal(t, "with another number", r.confirm(web.path(), "0700005555", p.PIN).status, 303)
}

// differentPIN is a well-formed PIN that was not issued.
func differentPIN(p issuedPIN) string {
	if p.PIN != "000000" {
		return "000000"
	}
	return "000001"
}

// A PIN that is not six digits is a fault of the form. It is not one of the five tries of the page or the number.
func TestMalformedPINIsNotCounted(t *testing.T) {
	r := newTestSandbox(t)
	web := r.payWeb("Shop_1", "")
	p, texts := r.issuePIN(""), r.sandbox.pages.textFor("fr")
	for _, code := range []string{
		"nope", "12345", "1234567", "12345x", "１２３４５６", "+12345", "-123456", "1234 5",
	} {
		response := r.confirm(web.path(), p.MSISDN, code)
		equal(t, "status of the response", response.status, 422)
		contains(t, "page", html.UnescapeString(response.body), texts.BadPIN)
	}
	r.checkPage("the first wrong PIN", r.confirm(web.path(), p.MSISDN, differentPIN(p)), 403, texts.wrongPINText(4))
	equal(t, "the PIN with a space, as many write it",
		r.confirm(web.path(), p.MSISDN, " "+p.PIN[:3]+"\u00a0"+p.PIN[3:]+" ").status, 303)
}

// After five wrong PINs neither the page nor the number takes a PIN that was issued before.
func TestWrongPINs(t *testing.T) {
	r := newTestSandbox(t)
	web, other := r.payWeb("Shop_1", ""), r.payWeb("Shop_2", "")
	p, q := r.issuePIN(""), r.issuePIN("")
	for range 5 {
		equal(t, "status of the response", r.confirm(web.path(), p.MSISDN, differentPIN(p)).status, 403)
	}
	texts := r.sandbox.pages.textFor("fr")
	r.checkPage("a sixth wrong PIN", r.confirm(web.path(), p.MSISDN, differentPIN(p)), 403, texts.Locked)
	equal(t, "the number's PIN elsewhere", r.confirm(other.path(), p.MSISDN, p.PIN).status, 403)
	equal(t, "an earlier PIN on the page", r.confirm(web.path(), q.MSISDN, q.PIN).status, 403)
	equal(t, "the other PIN elsewhere", r.confirm(other.path(), q.MSISDN, q.PIN).status, 303)
	r.clock.Advance(time.Second)
	p = r.issuePIN("")
	r.checkPage("a wrong PIN where a new one lives", r.confirm(web.path(), p.MSISDN, differentPIN(p)), 403,
		texts.wrongPINText(4))
	equal(t, "status with a new PIN", r.confirm(web.path(), p.MSISDN, p.PIN).status, 303)
}

func textBetween(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	inside, _, _ := strings.Cut(rest, after)
	return inside
}

// FuzzPage posts anything to the page: it never breaks, and without the PIN nothing is paid.
func FuzzPage(f *testing.F) {
	for _, seed := range [][3]string{
		{"confirm", "+2250700005555", "000000"}, {"confirm", " 225 07.00-00", ""}, {"cancel", "", ""}, {"", "\x00",
			"\xff"},
		{"confirm", "0700001009", "１２３４５６"},
		{"CONFIRM", "<b>", "%00"}, {"confirm", strings.Repeat("1", 5000), strings.Repeat("é", 900)},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, action, number, code string) {
		r := newTestSandbox(t)
		web, p := r.payWeb("Shop_1", ""), r.issuePIN("")
		if input, _ := parsePIN(code); input == p.PIN {
			t.Skip("it is the PIN")
		}
		response := r.post(web.path(), url.Values{"action": {action}, "msisdn": {number}, "pin": {code}})
		wanted := map[int]bool{403: action == "confirm", 422: true, 303: action == "cancel"}
		if !wanted[response.status] {
			t.Errorf("%d", response.status)
		}
		r.checkEffects("Shop_1", 0)
		if page := r.do("GET", web.path(), "", nil); page.status != 200 || !strings.HasSuffix(page.body, "</html>\n") {
			t.Errorf("the page afterwards: %d %s", page.status, page.body)
		}
	})
}
