package sandbox

import (
	"encoding/json"
	"html"
	"net/url"
	"strings"
	"testing"
	"time"
)

// webPayment is the answer of the web channel.
type webPayment struct {
	*rig
	webAnswer
}

func (r *rig) payWeb(order, msisdn string) webPayment {
	r.Helper()
	answer := r.pay("web", order, msisdn)
	if answer.status != 201 {
		r.Fatalf("%d %s", answer.status, answer.body)
	}
	web := webPayment{rig: r}
	if err := json.Unmarshal([]byte(answer.body), &web.webAnswer); err != nil {
		r.Fatal(err)
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

type issued struct {
	PIN       string    `json:"pin"`
	MSISDN    string    `json:"msisdn"`
	ExpiresAt time.Time `json:"expires_at"`
}

func (r *rig) test(body string) issued {
	r.Helper()
	var p issued
	r.control("POST", "/sandbox/v1/tests", body, 200, &p)
	return p
}

func (r *rig) post(path string, values url.Values) got {
	r.Helper()
	return r.do("POST", path, values.Encode(), map[string]string{"Content-Type": "application/x-www-form-urlencoded"})
}

func (r *rig) confirm(path, msisdn, code string) got {
	r.Helper()
	return r.post(path, url.Values{"action": {"confirm"}, "msisdn": {msisdn}, "pin": {code}})
}

const (
	returnURL = "https://shop.example/back?a=1&b=2"
	cancelURL = "https://shop.example/cancel"
)

func TestPageConfirm(t *testing.T) {
	r := newRig(t)
	web := r.payWeb("Shop_1", "")
	p := r.test("")
	answer := r.confirm(web.path(), p.MSISDN, p.PIN)
	if answer.status != 303 || answer.header.Get("Location") != returnURL {
		t.Fatalf("%d to %q", answer.status, answer.header.Get("Location"))
	}
	r.clock.Advance(0)
	if told := r.inbox.statuses(t); told != successful {
		t.Errorf("told %q", told)
	}
	var callback paymentPayload
	if err := json.Unmarshal([]byte(r.inbox.bodies[0]), &callback); err != nil {
		t.Fatal(err)
	}
	if callback.NotifToken != web.NotifToken || callback.UserMSISDN != p.MSISDN || callback.Meta.Type != "payment-notif" {
		t.Errorf("callback %+v", callback)
	}
	if len(r.effects("Shop_1")) != 1 || r.status("Shop_1") != successful {
		t.Errorf("%v %s", r.effects("Shop_1"), r.status("Shop_1"))
	}
	for range 2 { // a second click changes nothing
		if answer := r.confirm(web.path(), p.MSISDN, p.PIN); answer.status != 303 {
			t.Errorf("again: %d", answer.status)
		}
	}
	done := r.do("GET", web.path(), "", nil)
	if done.status != 200 || !strings.Contains(done.body, html.EscapeString(returnURL)) || strings.Contains(done.body, "<form") {
		t.Errorf("done page: %d %s", done.status, done.body)
	}
	r.clock.Advance(time.Hour)
	if told := r.inbox.statuses(t); told != successful {
		t.Errorf("told %q", told)
	}
}

func TestPageCancel(t *testing.T) {
	r := newRig(t)
	r.pay("web", "Shop_1", "0700001005") // applied, and cut
	web := r.payWeb("Shop_1", "0700001005")
	for range 2 {
		answer := r.post(web.path(), url.Values{"action": {"cancel"}})
		if answer.status != 303 || answer.header.Get("Location") != cancelURL {
			t.Fatalf("%d to %q", answer.status, answer.header.Get("Location"))
		}
	}
	r.clock.Advance(time.Hour)
	if told := r.inbox.statuses(t); told != cancelled || r.status("Shop_1") != cancelled || len(r.effects("Shop_1")) != 0 {
		t.Errorf("told %q, %s, %v", told, r.status("Shop_1"), r.effects("Shop_1"))
	}
}

// A page that nobody confirmed in time is a payment that never was, though its creation was applied.
func TestPageThatNobodyConfirms(t *testing.T) {
	r := newRig(t)
	r.pay("web", "Shop_1", "0700001005") // applied, and cut
	if len(r.effects("Shop_1")) != 1 {
		t.Error("no effect of what was applied")
	}
	r.clock.Advance(DefaultPageLifetime)
	if len(r.effects("Shop_1")) != 0 || r.transactions("Shop_1")[0].Effects != 0 {
		t.Errorf("effects of an expired payment: %v", r.effects("Shop_1"))
	}
}

// The number that is typed pays where the request names none; its digits decide. The last column is a second post.
func TestPageOutcomesOfTheTypedNumber(t *testing.T) {
	for _, c := range []struct {
		digits, first, again string
		told, status         string
		effects              int
	}{
		{"5555", "303", "303", "successful", "successful", 1},
		{"1001", "303", "303", "failed", "failed", 0},
		{"1002", "303", "303", "failed", "failed", 0},
		{"1003", "303", "303", "", "pending", 0},
		{"1005", "cut", "303", "successful", "successful", 1},
		{"1006", "303", "303", "successful successful successful", "successful", 1},
		{"1007", "303", "303", "successful failed", "successful", 1},
		{"1008", "303", "303", "successful", "successful", 1},
		{"1009", "503", "503", "", "pending", 0},
		{"1010", "200", "303", "successful", "successful", 1},
		{"1011", "303", "303", "", "successful", 1},
	} {
		t.Run(c.digits, func(t *testing.T) {
			r := newRig(t)
			web, p := r.payWeb("Shop_1", ""), r.test("")
			for _, want := range []string{c.first, c.again} {
				if answer := r.confirm(web.path(), "+225 07-00-00 "+c.digits, p.PIN); answer.word() != want {
					t.Errorf("%s, want %s", answer.word(), want)
				}
			}
			r.clock.Advance(time.Minute)
			if told := r.inbox.statuses(t); told != c.told || r.status("Shop_1") != c.status {
				t.Errorf("told %q, %s", told, r.status("Shop_1"))
			}
			if effects := r.effects("Shop_1"); len(effects) != c.effects {
				t.Errorf("effects %+v", effects)
			}
		})
	}
}

// A number in the request decides, whatever is typed: what concerns the first answer happened at the request.
func TestPageOutcomesOfTheRequestsNumber(t *testing.T) {
	for _, c := range []struct {
		digits, first, page, told string
		before, effects           int
	}{
		{"1001", "201", "303", "failed", 0, 0},
		{"1003", "201", "303", "", 0, 0},
		{"1005", "cut", "303", "successful", 1, 1},
		{"1007", "201", "303", "successful failed", 0, 1},
		{"1008", "201", "303", "successful", 1, 1},
		{"1010", "200", "303", "successful", 1, 1},
		{"1011", "201", "303", "", 0, 1},
	} {
		t.Run(c.digits, func(t *testing.T) {
			r := newRig(t)
			if answer := r.pay("web", "Shop_1", "0700"+c.digits); answer.word() != c.first {
				t.Errorf("%s", answer.word())
			}
			web, p := r.payWeb("Shop_1", "0700"+c.digits), r.test("")
			r.clock.Advance(time.Hour - time.Second)
			if effects := r.effects("Shop_1"); len(effects) != c.before {
				t.Errorf("effects before the page: %+v", effects)
			}
			p = r.test("")
			if answer := r.confirm(web.path(), p.MSISDN, p.PIN); answer.word() != c.page {
				t.Errorf("page: %s", answer.word())
			}
			r.clock.Advance(time.Minute)
			if told := r.inbox.statuses(t); told != c.told || len(r.effects("Shop_1")) != c.effects {
				t.Errorf("told %q, effects %+v", told, r.effects("Shop_1"))
			}
		})
	}
}

func TestSlowPage(t *testing.T) {
	r := newRig(t)
	web, p := r.payWeb("Shop_1", ""), r.test("")
	first := r.later(func() got { return r.confirm(web.path(), "0700001004", p.PIN) })
	r.clock.Advance(59 * time.Second)
	if answer := r.confirm(web.path(), "0700001004", p.PIN); answer.status != 409 {
		t.Errorf("meanwhile: %d", answer.status)
	}
	if status := r.status("Shop_1"); status != pending {
		t.Errorf("meanwhile: %s", status)
	}
	r.clock.Advance(time.Second)
	if answer := <-first; answer.status != 303 {
		t.Errorf("%s", answer.word())
	}
	if len(r.effects("Shop_1")) != 1 {
		t.Errorf("%v", r.effects("Shop_1"))
	}
}

func TestPINs(t *testing.T) {
	r := newRig(t)
	web, p := r.payWeb("Shop_1", ""), r.test(`{"msisdn":"+2250700004444"}`)
	if p.MSISDN != "+2250700004444" || !p.ExpiresAt.Equal(r.clock.Now().Add(15*time.Minute)) {
		t.Errorf("%+v", p)
	}
	if answer := r.confirm(web.path(), p.MSISDN, notIt(p)); answer.status != 403 || !strings.Contains(answer.body, `role="alert"`) {
		t.Errorf("wrong: %d %s", answer.status, answer.body)
	}
	if answer := r.confirm(web.path(), "x", p.PIN); answer.status != 422 {
		t.Errorf("bad number: %d", answer.status)
	}
	r.clock.Advance(15 * time.Minute)
	if answer := r.confirm(web.path(), p.MSISDN, p.PIN); answer.status != 403 {
		t.Errorf("expired: %d", answer.status)
	}
	p = r.test("")
	if answer := r.confirm(web.path(), "0700005555", p.PIN); answer.status != 303 {
		t.Errorf("live, with another number: %d", answer.status)
	}
	if answer := r.confirm(r.payWeb("Shop_2", "").path(), p.MSISDN, p.PIN); answer.status != 403 {
		t.Errorf("used: %d", answer.status)
	}
}

// notIt is a well-formed PIN that nobody issued.
func notIt(p issued) string {
	if p.PIN != "000000" {
		return "000000"
	}
	return "000001"
}

// A PIN that is not six digits is a slip of the hand, which the form tells: it costs none of the five tries, neither the
// page's nor the number's.
func TestMalformedPINCostsNothing(t *testing.T) {
	r := newRig(t)
	web := r.payWeb("Shop_1", "")
	p, words := r.test(""), frenchText()
	for _, code := range []string{"nope", "12345", "1234567", "12345x", "１２３４５６", "+12345", "-123456", "1234 5"} {
		answer := r.confirm(web.path(), p.MSISDN, code)
		if answer.status != 422 || !strings.Contains(html.UnescapeString(answer.body), words.BadPIN) {
			t.Errorf("%q: %d %s", code, answer.status, answer.body)
		}
	}
	if answer := r.confirm(web.path(), p.MSISDN, notIt(p)); !strings.Contains(answer.body, words.wrongPIN(4)) {
		t.Errorf("the first wrong PIN: %s", answer.body)
	}
	if answer := r.confirm(web.path(), p.MSISDN, " "+p.PIN[:3]+"\u00a0"+p.PIN[3:]+" "); answer.status != 303 {
		t.Errorf("the PIN with a space, as many write it: %d", answer.status)
	}
}

// After five wrong PINs neither the page nor the number takes a PIN that was issued before.
func TestWrongPINs(t *testing.T) {
	r := newRig(t)
	web, other := r.payWeb("Shop_1", ""), r.payWeb("Shop_2", "")
	p, q := r.test(""), r.test("")
	for range 5 {
		if answer := r.confirm(web.path(), p.MSISDN, notIt(p)); answer.status != 403 {
			t.Fatalf("%d", answer.status)
		}
	}
	words := frenchText()
	if answer := r.confirm(web.path(), p.MSISDN, notIt(p)); !strings.Contains(answer.body, words.Locked) {
		t.Errorf("a sixth wrong PIN, and none lives: %s", answer.body)
	}
	if answer := r.confirm(other.path(), p.MSISDN, p.PIN); answer.status != 403 {
		t.Errorf("the number's PIN elsewhere: %d", answer.status)
	}
	if answer := r.confirm(web.path(), q.MSISDN, q.PIN); answer.status != 403 {
		t.Errorf("an earlier PIN on the page: %d", answer.status)
	}
	if answer := r.confirm(other.path(), q.MSISDN, q.PIN); answer.status != 303 {
		t.Errorf("the other PIN elsewhere: %d", answer.status)
	}
	r.clock.Advance(time.Second)
	p = r.test("")
	if answer := r.confirm(web.path(), p.MSISDN, notIt(p)); !strings.Contains(answer.body, words.wrongPIN(4)) {
		t.Errorf("a wrong PIN where a new one lives: %s", answer.body)
	}
	if r.confirm(web.path(), p.MSISDN, p.PIN).status != 303 {
		t.Errorf("a new PIN is refused")
	}
}

func TestUnknownPage(t *testing.T) {
	r := newRig(t)
	for _, method := range []string{"GET", "POST"} {
		if answer := r.do(method, "/pay/nothing", "", nil); answer.status != 404 || !strings.Contains(answer.body, "<html") {
			t.Errorf("%s: %d %s", method, answer.status, answer.body)
		}
	}
}

func TestBadAction(t *testing.T) {
	r := newRig(t)
	web := r.payWeb("Shop_1", "")
	if answer := r.post(web.path(), url.Values{"msisdn": {"1"}}); answer.status != 422 {
		t.Errorf("%d", answer.status)
	}
	if status := r.status("Shop_1"); status != pending {
		t.Errorf("%s", status)
	}
}

func between(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	inside, _, _ := strings.Cut(rest, after)
	return inside
}

// FuzzPage posts anything to the page: it never breaks, and without the PIN nothing is paid.
func FuzzPage(f *testing.F) {
	for _, seed := range [][3]string{
		{"confirm", "+2250700005555", "000000"}, {"confirm", " 225 07.00-00", ""}, {"cancel", "", ""}, {"", "\x00", "\xff"},
		{"confirm", "0700001009", "１２３４５６"}, {"CONFIRM", "<b>", "%00"}, {"confirm", strings.Repeat("1", 5000), strings.Repeat("é", 900)},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, action, number, code string) {
		r := newRig(t)
		web, p := r.payWeb("Shop_1", ""), r.test("")
		if typed, _ := typedPIN(code); typed == p.PIN {
			t.Skip("it is the PIN")
		}
		answer := r.post(web.path(), url.Values{"action": {action}, "msisdn": {number}, "pin": {code}})
		wanted := map[int]bool{403: action == "confirm", 422: true, 303: action == "cancel"}
		if !wanted[answer.status] {
			t.Errorf("%d", answer.status)
		}
		if effects := r.effects("Shop_1"); len(effects) != 0 {
			t.Errorf("%v", effects)
		}
		if page := r.do("GET", web.path(), "", nil); page.status != 200 || !strings.HasSuffix(page.body, "</html>\n") {
			t.Errorf("the page afterwards: %d %s", page.status, page.body)
		}
	})
}
