package orangewebpay_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/kits/stubtest"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/orangewebpay"
)

func TestRefusedFields(t *testing.T) {
	long := func(n int) string { return "https://m.test/" + strings.Repeat("x", n-len("https://m.test/")) }
	for _, c := range []struct {
		name, old, replacement string
		code                   int // 0 is accepted
	}{
		{"no order_id", `"order_id":"ORD1",`, ``, 23},
		{"no amount", `"amount":1200,`, ``, 23},
		{"empty lang", `"fr"`, `""`, 23},
		{"no JSON", `{`, `<`, 22},
		{"amount as text", `1200`, `"1200"`, 22},
		{"decimals", `1200`, `1200.5`, 22},
		{"negative", `1200`, `-1`, 22},
		{"lang", `"fr"`, `"de"`, 22},
		{"merchant_key", `stub-ci-key`, `stub-bf-key`, 22},
		{"order_id 30", `ORD1`, strings.Repeat("x", 30), 0},
		{"order_id 31", `ORD1`, strings.Repeat("x", 31), 22},
		{"reference 30", `Shop`, strings.Repeat("é", 30), 0},
		{"reference 31", `Shop`, strings.Repeat("é", 31), 22},
		{"notif_url 120", `https://gateway.test/cb`, long(120), 0},
		{"notif_url 121", `https://gateway.test/cb`, long(121), 22},
		{"return_url 121", `https://m.test/ret`, long(121), 22},
		{"cancel_url 121", `https://m.test/can`, long(121), 22},
		{"localhost", `https://gateway.test/cb`, `http://localhost:8080/cb`, 22},
		{"loopback", `https://m.test/ret`, `http://127.0.0.1/ret`, 22},
		{"no URL", `https://m.test/can`, `cancel`, 22},
	} {
		for _, quirks := range []string{"", "nested_error"} {
			b := newBench(t, quirks)
			status, text := b.post(base+"webpayment", strings.Replace(valid, c.old, c.replacement, 1))
			if c.code == 0 {
				if status != 201 {
					t.Errorf("%s: %d %s, want 201", c.name, status, text)
				}
				continue
			}
			want := fmt.Sprintf(`{"code":%d,`, c.code)
			if quirks != "" {
				want = `{"error":` + want
			}
			if status != 400 || !strings.HasPrefix(text, want) {
				t.Errorf("%s with %s: %d %s, want 400 %s", c.name, quirks, status, text, want)
			}
		}
	}
	local := newBench(t, "", func(c *orangewebpay.Credentials) { c.LocalURLs = true })
	local.create("https://gateway.test/cb", "http://localhost:8080/cb")
}

func TestLookupNeedsThreeValues(t *testing.T) {
	b := newBench(t, "")
	token := b.create().PayToken
	other := b.create("ORD1", "ORD2").PayToken
	for _, c := range []struct{ body, want string }{
		{`{"amount":1200,"pay_token":"` + token + `"}`, `Key: 'GetTransactionStatusInfo.OrderId' Error:Field`},
		{`{"order_id":"ORD1","pay_token":"` + token + `"}`, `"code":23,`},
		{`{"order_id":"ORD1","amount":1200}`, `'PayToken' failed on the 'required' tag`},
		{`{"order_id":"ORD1","amount":1201,"pay_token":"` + token + `"}`, `"code":22,`},
		{`{"order_id":"ORD1","amount":"1200","pay_token":"` + token + `"}`, `"code":22,`},
		{`{"order_id":"ORD1","amount":1200,"pay_token":"` + other + `"}`, `"code":22,`},
		{`{"order_id":"ORD3","amount":1200,"pay_token":"` + token + `"}`, `"code":22,`},
	} {
		if status, text := b.post(base+"transactionstatus", c.body); status != 400 || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s, want 400 %s", c.body, status, text, c.want)
		}
	}
}

func TestTokenCall(t *testing.T) {
	for _, c := range []struct {
		quirks, path, id, secret, grant string
		status                          int
		want                            string
	}{
		{"", "v3", "stub-ci", "stub-ci-secret", "client_credentials", 200,
			`"expires_in":7776000,"token_type":"Bearer"`},
		{"", "v2", "stub-ci", "stub-ci-secret", "client_credentials", 200, `"access_token"`},
		{"expires_in_text", "v3", "stub-ci", "stub-ci-secret", "client_credentials", 200,
			`"expires_in":"7776000"`},
		{"token_60s", "v3", "stub-ci", "stub-ci-secret", "client_credentials", 200, `"expires_in":60`},
		{"", "v1", "stub-ci", "stub-ci-secret", "client_credentials", 404, `"code":60,`},
		{"", "v3", "stub-ci", "stub-bf-secret", "client_credentials", 401, `"code":41,`},
		{"", "v3", "stub-ci", "stub-ci-secret", "password", 400, `"code":22,`},
	} {
		b := newBench(t, c.quirks)
		status, text := b.tokenCall("/oauth/"+c.path+"/token", c.id, c.secret, c.grant)
		if status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%+v: %d %s", c, status, text)
		}
	}
}

func TestInvalidTokens(t *testing.T) {
	for _, name := range []string{"webpayment", "transactionstatus"} {
		stubtest.CheckTokens(t, 90*24*time.Hour, `"code":42,`, func(t *testing.T) stubtest.TokenUser {
			b := newBench(t, "")
			body := valid
			if name == "transactionstatus" {
				body = `{"order_id":"ORD1","amount":1200,"pay_token":"` + b.create().PayToken + `"}`
			}
			call := func() (int, string) { return b.post(base+name, body) }
			return stubtest.TokenUser{Stub: b.Stub, Renew: func() { b.token = b.mint("ci") }, Call: call}
		})
		b := newBench(t, "")
		b.token = "x"
		if status, text := b.post(base+name, valid); status != 401 || !strings.Contains(text, `"code":41,`) {
			t.Errorf("%s with an unknown token: %d %s", name, status, text)
		}
	}
}

func TestWrongType(t *testing.T) {
	b := newBench(t, "")
	status, _ := b.Do("POST", base+"webpayment", valid, "Authorization", "Bearer "+b.token,
		"Content-Type", "text/plain")
	if status != 415 {
		t.Error(status)
	}
}

func TestQuirksOfNotifications(t *testing.T) {
	const refused = "2250700001001"
	local := func(c *orangewebpay.Credentials) { c.LocalURLs = true }
	strict := func(*orangewebpay.Credentials) {}
	for _, c := range []struct {
		quirks, msisdn, notifURL string
		change                   func(*orangewebpay.Credentials)
		wait                     time.Duration // before the confirmation
		want                     string
	}{
		{"no_notification", payer, "", strict, 0, ""},
		{"failure_word", refused, "", strict, 0, "FAILURE"},
		{"failure_word", payer, "", strict, 0, "SUCCESS"},
		{"notify_expired", payer, "", strict, 10 * time.Minute, "EXPIRED"},
		{"", payer, "", strict, 10 * time.Minute, ""},
		{"page_3s notify_expired", payer, "", strict, 3 * time.Second, "EXPIRED"},
		{"", payer, "http://192.0.2.1/cb", strict, 0, ""},
		{"", payer, "http://192.0.2.1/cb", local, 0, "SUCCESS"},
		{"", payer, "http://gateway.test/cb", strict, 0, "SUCCESS"},
		{"", payer, "https://192.0.2.1/cb", strict, 0, "SUCCESS"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, c.quirks, c.change)
			change := []string{}
			if c.notifURL != "" {
				change = []string{"https://gateway.test/cb", c.notifURL}
			}
			p := b.create(change...)
			time.Sleep(c.wait)
			b.press(p, "confirm", c.msisdn, "123456")
			if time.Sleep(time.Minute); b.Words("status") != c.want {
				t.Errorf("%s %s %s: %q, want %q", c.quirks, c.msisdn, c.notifURL, b.Words("status"), c.want)
			}
		})
	}
}

func TestSameDebit(t *testing.T) {
	for _, c := range []struct {
		quirks, amount string
		pause          time.Duration
		effects        int
	}{
		{"same_debit_failed", `1200`, time.Minute, 1},
		{"same_debit_failed", `1201`, time.Minute, 2},
		{"same_debit_failed", `1200`, time.Hour, 2},
		{"", `1200`, time.Minute, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, c.quirks)
			b.press(b.create(), "confirm", payer, "123456")
			time.Sleep(c.pause)
			b.press(b.create("ORD1", "ORD2", "1200", c.amount), "confirm", payer, "123456")
			if time.Sleep(time.Minute); b.Effects("") != c.effects {
				t.Errorf("%+v: %d effects, %s", c, b.Effects(""), b.Words("status"))
			}
		})
	}
}

func TestScriptedFaultsInTheOperatorsForms(t *testing.T) {
	for mode, want := range map[string]string{
		"400": `400 {"code":22`, "23": `400 {"code":23`, "401": `401 {"code":42`, "41": `401 {"code":41`,
		"403": `403 {"code":50`, "51": `403 {"code":51`, "404": `404 {"code":60`, "405": `405 <html>`,
		"415": `415 <html>`, "429": `429 {"code":53`, "500": `500 {"code":1,`, "503": `503 {"code":5,`,
		"1204": `400 {"code":1204`, "incomplete-applied": `201 {"message":"OK","status":201}`, "cut-applied": `0 `,
	} {
		b := newBench(t, "")
		create := func() (int, string) { return b.post(base+"webpayment", valid) }
		b.CheckScript("webpayment", "ORD1", mode, want, create)
		status, text := create()
		if used := strings.Contains(text, `"code":1204`); used != strings.HasSuffix(mode, "-applied") {
			t.Errorf("%s, then %d %s", mode, status, text)
		}
	}
}

func TestCallsAreListedUnderTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		p := b.create()
		b.press(p, "confirm", payer, "123456")
		time.Sleep(time.Minute)
		b.status(p)
		_, text := b.Do("GET", "/stub/v1/calls?key=ORD1", "")
		for _, operation := range []string{"webpayment", "transactionstatus", "page", "confirm", "callback"} {
			if strings.Count(text, `"`+operation+`"`) != 1 {
				t.Errorf("%s: %s", operation, text)
			}
		}
		for _, secret := range []string{p.PayToken, p.NotifToken, b.token, payer} {
			if strings.Contains(text, secret) {
				t.Errorf("a secret in %s", text)
			}
		}
	})
}

func TestWireForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		credentials := orangewebpay.DefaultCredentials()
		credentials.PageURL = "https://pay.test/orange"
		config := kit.Config{Rand: stubtest.Zeros{}, Client: stubtest.Client(b.Callbacks)}
		b.Handler = orangewebpay.New(config, credentials).Handler()
		b.token = b.mint("ci")
		payToken, notifToken := "v1"+strings.Repeat("0", 48), strings.Repeat("0", 32)
		_, created := b.post(base+"webpayment", valid)
		b.press(stubtest.Parse[payment](t, created), "confirm", payer, "123456")
		time.Sleep(time.Minute)
		_, found := b.post(base+"transactionstatus", `{"order_id":"ORD1","amount":1200,"pay_token":"`+payToken+`"}`)
		_, effects := b.Do("GET", "/stub/v1/effects", "")
		for _, c := range []struct{ got, want string }{
			{created, `{"message":"OK","notif_token":"` + notifToken + `","pay_token":"` + payToken +
				`","payment_url":"https://pay.test/orange/payment/pay_token/` + payToken + `","status":201}`},
			{found, `{"order_id":"ORD1","status":"SUCCESS","txnid":"MP000101.0000.A10000"}`},
			{b.Callbacks.All()[0].Body,
				`{"notif_token":"` + notifToken + `","status":"SUCCESS","txnid":"MP000101.0000.A10000"}`},
			{effects, `[{"kind":"payment","key":"ORD1","amount":"1200","currency":"XOF","at":"2000-01-01T00:00:02Z",` +
				`"callback_url":"https://gateway.test/cb","operator":"orangewebpay"}]`},
		} {
			if c.got != c.want {
				t.Errorf("got  %s\nwant %s", c.got, c.want)
			}
		}
	})
}
