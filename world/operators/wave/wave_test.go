package wave_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/kits/stubtest"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/wave"
)

const (
	path     = "/v1/checkout/sessions"
	valid    = `{"amount":"500","currency":"XOF","success_url":"https://m.test/ok","error_url":"https://m.test/ko"%s}`
	ours     = `,"client_reference":"ORD1"`
	payerSN  = "221770000000"
	senegal  = "Bearer wave_sn_prod_stub"
	ivory    = "Bearer wave_ci_prod_stub"
	webhooks = "https://gateway.test/cb/sn"
)

type bench struct{ *stubtest.Stub }

func newBench(t *testing.T, quirks string, change ...func(*wave.Credentials)) bench {
	t.Helper()
	credentials := wave.DefaultCredentials()
	credentials.PageURL = "https://pay.test/wave"
	credentials.Wallets[0].WebhookURL = webhooks
	for _, f := range change {
		f(&credentials)
	}
	return bench{stubtest.NewStub(t, "wave", quirks, func(client *http.Client) http.Handler {
		return wave.New(kit.Config{Client: client}, credentials).Handler()
	})}
}

type session struct {
	ID             string
	CheckoutStatus string                 `json:"checkout_status"`
	PaymentStatus  string                 `json:"payment_status"`
	LaunchURL      string                 `json:"wave_launch_url"`
	TransactionID  string                 `json:"transaction_id"`
	Last           *struct{ Code string } `json:"last_payment_error"`
}

func (s session) words() string {
	text := s.CheckoutStatus + " " + s.PaymentStatus
	if s.Last != nil {
		text += " " + s.Last.Code
	}
	return text
}

func (b bench) create(more string) session {
	b.Helper()
	status, text := b.Do("POST", path, fmt.Sprintf(valid, more), "Authorization", senegal)
	if status != 200 {
		b.Fatalf("create: %d %s", status, text)
	}
	return stubtest.Parse[session](b.T, text)
}

func (b bench) find(id string) session {
	b.Helper()
	status, text := b.Do("GET", path+"/"+id, "", "Authorization", senegal)
	if status != 200 {
		b.Fatalf("lookup: %d %s", status, text)
	}
	return stubtest.Parse[session](b.T, text)
}

// search finds the sessions of ours.
func (b bench) search() string {
	b.Helper()
	_, text := b.Do("GET", path+"/search?client_reference=ORD1", "", "Authorization", senegal)
	return text
}

// press opens the page as given and presses a button.
func (b bench) press(s session, action, msisdn string) (int, string) {
	b.Helper()
	page := strings.TrimPrefix(s.LaunchURL, "https://pay.test/wave")
	if status, text := b.Do("GET", page, ""); status != 200 {
		b.Fatalf("page: %d %s", status, text)
	}
	form := url.Values{"action": {action}, "msisdn": {msisdn}}
	return b.Do("POST", page, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

type event struct {
	ID, Type string
	Data     session
}

func (b bench) events() string {
	return strings.ReplaceAll(b.Words("type"), "checkout.session.", "")
}

// A number is confirmed; else the first word of the row is the button.
func TestOutcomesOnThePage(t *testing.T) {
	const complete, unpaid = "complete succeeded", "open processing | expired processing"
	words := stubtest.Words{Accepted: "303", Paid: complete + " | " + complete, Unknown: unpaid,
		Success: "completed", Failure: "payment_failed"}
	failed := func(code string) string {
		return "open processing " + code + " | expired processing " + code
	}
	outcomes := words.Outcomes("22177000", map[string]string{"+221 77 000 00 00": words.Paid},
		map[string]stubtest.Outcome{
			"221770001001":   {Response: "200", Status: failed("payment-failure"), Callbacks: "payment_failed"},
			"221770001002":   {Response: "200", Status: failed("insufficient-funds"), Callbacks: "payment_failed"},
			"221770001003":   {Response: "200", Status: unpaid},
			"confirm":        {Response: "400", Status: unpaid},
			"cancel":         {Response: "303", Status: "expired cancelled | expired cancelled"},
			"close":          {Response: "200", Status: unpaid},
			"odd " + payerSN: {Response: "400", Status: unpaid},
		})
	stubtest.CheckOutcomes(t, outcomes, func(t *testing.T, quirks string) stubtest.Trial {
		b := newBench(t, quirks)
		s := b.create(ours)
		if s.words() != "open processing" {
			t.Error(s)
		}
		once := ""
		pay := func(row string) string {
			action, number := "confirm", row
			if row[0] >= 'a' {
				action, number, _ = strings.Cut(row, " ")
			}
			status, _ := b.press(s, action, number)
			once = b.find(s.ID).words()
			return fmt.Sprint(status)
		}
		lookup := func() string {
			end := b.find(s.ID).words()
			b.press(s, "confirm", payerSN) // the page takes no payment any more
			return once + " | " + end
		}
		return stubtest.Trial{Stub: b.Stub, Pay: pay, Status: lookup, Words: b.events, Key: "ORD1"}
	})
}

func TestFailedPaymentIsNotFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		s := b.create(ours)
		b.press(s, "confirm", "221770001002")
		time.Sleep(29 * time.Minute)
		if status, _ := b.press(s, "confirm", payerSN); status != 303 {
			t.Error(status)
		}
		time.Sleep(time.Hour)
		if got := b.find(s.ID).words(); got != "complete succeeded insufficient-funds" {
			t.Error(got)
		}
		if got := b.events(); got != "payment_failed completed" || b.Effects("ORD1") != 1 {
			t.Error(got, b.Effects("ORD1"))
		}
	})
}

func TestTwoRequestsMakeTwoSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		body := fmt.Sprintf(valid, ours)
		for range 2 {
			b.Do("POST", path, body, "Authorization", senegal, "Idempotency-Key", "k")
		}
		text := b.search()
		found := stubtest.Parse[struct{ Result []session }](t, text).Result
		if len(found) != 2 || found[0].ID == found[1].ID {
			t.Fatal(text)
		}
		for _, s := range found {
			b.press(s, "confirm", payerSN)
		}
		if b.Effects("ORD1") != 2 {
			t.Errorf("%d effects, want 2", b.Effects("ORD1"))
		}
		_, text = b.Do("GET", path+"/search?client_reference=ORD1", "", "Authorization", ivory)
		if text != `{"result":[]}` {
			t.Errorf("another wallet finds %s", text)
		}
		_, text = b.Do("GET", "/stub/v1/calls?key=ORD1", "")
		for operation, want := range map[string]int{"create": 2, "search": 2, "page": 2, "confirm": 2} {
			if got := strings.Count(text, `"`+operation+`"`); got != want {
				t.Errorf("%d calls of %s, want %d: %s", got, operation, want, text)
			}
		}
	})
}

func TestRestrictedPayer(t *testing.T) {
	for msisdn, want := range map[string]string{
		payerSN:        "open processing payer-mobile-mismatch",
		"221770000001": "complete succeeded",
	} {
		b := newBench(t, "")
		s := b.create(ours + `,"restrict_payer_mobile":"+221770000001"`)
		if b.press(s, "confirm", msisdn); b.find(s.ID).words() != want {
			t.Errorf("%s: %s, want %s", msisdn, b.find(s.ID).words(), want)
		}
	}
	for payer, want := range map[string]int{"1005": 0, "1009": 503, "1010": 200} {
		b := newBench(t, "")
		body := fmt.Sprintf(valid, ours+`,"restrict_payer_mobile":"+22177000`+payer+`"`)
		status, _ := b.Do("POST", path, body, "Authorization", senegal)
		if made := strings.Contains(b.search(), "cos-"); status != want || made != (payer != "1009") {
			t.Errorf("%s: %d, a session: %t", payer, status, made)
		}
	}
}

func TestLookupsAndExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		paid, open := b.create(ours), b.create("")
		b.press(paid, "confirm", payerSN)
		transaction := b.find(paid.ID).TransactionID
		for _, c := range []struct {
			method, path, key string
			status            int
			want              string
		}{
			{"GET", "?transaction_id=" + transaction, senegal, 200, paid.ID},
			{"GET", "?transaction_id=" + transaction, ivory, 404, "checkout-session-not-found"},
			{"GET", "?transaction_id=T1", senegal, 404, "checkout-session-not-found"},
			{"GET", "", senegal, 400, "request-validation-error"},
			{"GET", "/search", senegal, 400, "request-validation-error"},
			{"GET", "/search?client_reference=x", senegal, 200, `{"result":[]}`},
			{"GET", "/cos-1", senegal, 404, "checkout-session-not-found"},
			{"GET", "/" + open.ID, ivory, 404, "checkout-session-not-found"},
			{"GET", "/" + open.ID, senegal, 200, `"client_reference":null`},
			{"POST", "/" + paid.ID + "/expire", senegal, 409, "checkout-session-final"},
			{"POST", "/cos-1/expire", senegal, 404, "checkout-session-not-found"},
			{"POST", "/" + open.ID + "/expire", ivory, 404, "checkout-session-not-found"},
			{"POST", "/" + open.ID + "/expire", senegal, 200, ""},
			{"POST", "/" + open.ID + "/expire", senegal, 409, "checkout-session-final"},
			{"GET", "/" + open.ID, senegal, 200, `"checkout_status":"expired"`},
		} {
			status, text := b.Do(c.method, path+c.path, "", "Authorization", c.key)
			if status != c.status || !strings.Contains(text, c.want) {
				t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, status, text, c.status, c.want)
			}
		}
		if _, text := b.press(open, "confirm", payerSN); !strings.Contains(text, "expired") || b.Effects("ORD1") != 1 {
			t.Error(text, b.Effects("ORD1"))
		}
	})
}

func TestRefusals(t *testing.T) {
	swap := func(old, replacement string) string {
		return strings.Replace(fmt.Sprintf(valid, ours), old, replacement, 1)
	}
	for _, c := range []struct {
		name, body, authorization string
		status                    int
		code                      string
	}{
		{"no header", swap("", ""), "", 401, "missing-auth-header"},
		{"Basic", swap("", ""), "Basic eA==", 401, "invalid-auth"},
		{"no key", swap("", ""), "Bearer", 401, "api-key-not-provided"},
		{"wrong key", swap("", ""), "Bearer x", 401, "no-matching-api-key"},
		{"number", swap(`"500"`, `500`), senegal, 400, "request-validation-error"},
		{"decimals", swap(`"500"`, `"5.50"`), senegal, 400, "request-validation-error"},
		{"zero", swap(`"500"`, `"0500"`), senegal, 400, "request-validation-error"},
		{"currency", swap("XOF", "XAF"), senegal, 400, "request-validation-error"},
		{"http", swap("https://m.test/ko", "http://m.test/ko"), senegal, 400, "request-validation-error"},
		{"no URL", swap(`"success_url":"https://m.test/ok",`, ""), senegal, 400, "request-validation-error"},
		{"unknown field", swap(`{`, `{"metadata":{},`), senegal, 400, "request-validation-error"},
		{"reference", swap("ORD1", strings.Repeat("x", 256)), senegal, 400, "request-validation-error"},
		{"payer", swap(`{`, `{"restrict_payer_mobile":"221770000000",`), senegal, 400, "request-validation-error"},
		{"no JSON", `<x>`, senegal, 400, "request-validation-error"},
	} {
		for _, quirks := range []string{"", "nested_error"} {
			b := newBench(t, quirks)
			headers := []string{"Authorization", c.authorization}
			if c.authorization == "" {
				headers = nil
			}
			status, text := b.Do("POST", path, c.body, headers...)
			nested := strings.HasPrefix(text, `{"error":{"code":"`+c.code)
			flat := strings.HasPrefix(text, `{"code":"`+c.code)
			if status != c.status || nested != (quirks != "") || flat == nested {
				t.Errorf("%s with %s: %d %s, want %d %s", c.name, quirks, status, text, c.status, c.code)
			}
			if found := b.search(); found != `{"result":[]}` {
				t.Errorf("%s: a refused request made a session: %s", c.name, found)
			}
		}
	}
	local := newBench(t, "", func(c *wave.Credentials) { c.LocalURLs = true })
	body := swap("https://m.test/ko", "http://localhost:1/ko")
	if status, text := local.Do("POST", path, body, "Authorization", senegal); status != 200 {
		t.Error(status, text)
	}
}

func TestLaunchURLIsUsedAsGiven(t *testing.T) {
	b := newBench(t, "")
	s := b.create(ours)
	for _, page := range []string{"/c/" + s.ID, "/c/" + s.ID + "?a=1", "/c/cos-1"} {
		for _, method := range []string{"GET", "POST"} {
			if status, _ := b.Do(method, page, "action=confirm&msisdn="+payerSN); status != 404 {
				t.Errorf("%s %s: %d, want 404", method, page, status)
			}
		}
	}
	if b.Effects("ORD1") != 0 {
		t.Error("paid on a wrong page")
	}
}

func TestScriptedFaultsInTheOperatorsForms(t *testing.T) {
	for mode, want := range map[string]string{
		"400": `400 {"code":"request-validation-error"`, "401": `401 {"code":"no-matching-api-key"`,
		"api-key-revoked": `401 {"code":"api-key-revoked"`, "403": `403 {"code":"disabled-wallet"`,
		"404": `404 {"code":"checkout-session-not-found"`, "409": `409 {"code":"idempotency-mismatch"`,
		"429": `429 {"code":"rate-limit-exceeded"`, "500-applied": `500 {"code":"internal-server-error"`,
		"503": `503 {"code":"service-unavailable"`, "cut-applied": `0 `,
	} {
		b := newBench(t, "")
		b.CheckScript("create", "ORD1", mode, want, func() (int, string) {
			return b.Do("POST", path, fmt.Sprintf(valid, ours), "Authorization", senegal)
		})
		if made := strings.Count(b.search(), `"id"`); made != strings.Count(mode, "-applied") {
			t.Errorf("%s: %d sessions", mode, made)
		}
	}
}
