package orangewebpay_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/kits/stubtest"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/orangewebpay"
)

const (
	valid = `{"merchant_key":"stub-ci-key","currency":"XOF","order_id":"ORD1","amount":1200,` +
		`"return_url":"https://m.test/ret","cancel_url":"https://m.test/can","notif_url":"https://gateway.test/cb",` +
		`"lang":"fr","reference":"Shop"}`
	base  = "/orange-money-webpay/ci/v1/"
	payer = "2250700000000"
)

type bench struct {
	*stubtest.Stub
	token string
}

func newBench(t *testing.T, quirks string, change ...func(*orangewebpay.Credentials)) *bench {
	t.Helper()
	credentials := orangewebpay.DefaultCredentials()
	credentials.PageURL = "https://pay.test/orange"
	for _, f := range change {
		f(&credentials)
	}
	b := &bench{Stub: stubtest.NewStub(t, "orangewebpay", quirks, func(client *http.Client) http.Handler {
		return orangewebpay.New(kit.Config{Client: client}, credentials).Handler()
	})}
	b.token = b.mint("ci")
	return b
}

func (b *bench) mint(segment string) string {
	b.Helper()
	_, text := b.tokenCall("/oauth/v3/token", "stub-"+segment, "stub-"+segment+"-secret", "client_credentials")
	return stubtest.Field(b.T, text, "access_token")
}

func (b *bench) tokenCall(path, id, secret, grant string) (int, string) {
	b.Helper()
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
	return b.Do("POST", path, "grant_type="+grant, "Authorization", basic,
		"Content-Type", "application/x-www-form-urlencoded")
}

func (b *bench) post(path, body string) (int, string) {
	b.Helper()
	return b.Do("POST", path, body, "Authorization", "Bearer "+b.token,
		"Content-Type", "application/json")
}

type payment struct {
	Status     int
	PayToken   string `json:"pay_token"`
	PaymentURL string `json:"payment_url"`
	NotifToken string `json:"notif_token"`
}

func (b *bench) create(change ...string) payment {
	b.Helper()
	status, text := b.post(base+"webpayment", strings.NewReplacer(change...).Replace(valid))
	p := stubtest.Parse[payment](b.T, text)
	if status != 201 || p.Status != 201 || p.PayToken == "" || len(p.NotifToken) != 32 {
		b.Fatalf("create: %d %s", status, text)
	}
	return p
}

func (b *bench) status(p payment) string {
	b.Helper()
	status, text := b.post(base+"transactionstatus",
		`{"order_id":"ORD1","amount":1200,"pay_token":"`+p.PayToken+`"}`)
	v := stubtest.Parse[map[string]string](b.T, text)
	if status != 201 || v["order_id"] != "ORD1" {
		b.Errorf("lookup: %d %s", status, text)
	}
	if final := v["status"] == "SUCCESS" || v["status"] == "FAILED"; final != (v["txnid"] != "") {
		b.Errorf("lookup: %s", text)
	}
	return v["status"]
}

func (b *bench) press(p payment, action, msisdn, code string) (int, string) {
	b.Helper()
	page := strings.TrimPrefix(p.PaymentURL, "https://pay.test/orange")
	if status, text := b.Do("GET", page, ""); status != 200 {
		b.Fatalf("page: %d %s", status, text)
	}
	form := url.Values{"action": {action}, "msisdn": {msisdn}, "code": {code}}
	return b.Do("POST", page, form.Encode())
}

// A row is a number, or the button, the number and the code with slashes between them.
func TestOutcomesOnThePage(t *testing.T) {
	const paid, early, unpaid = "PENDING | SUCCESS", "SUCCESS | SUCCESS", "INITIATED | EXPIRED"
	words := stubtest.Words{Accepted: "303", Paid: paid, Refused: "PENDING | FAILED", NoFunds: "PENDING | FAILED",
		Undecided: "PENDING | PENDING", Unknown: unpaid, Success: "SUCCESS", Failure: "FAILED"}
	outcomes := words.Outcomes("225070000", map[string]string{"confirm/+225 07 00 00 00 00/123 456": paid},
		map[string]stubtest.Outcome{
			"2250700001008":                {Response: "303", Status: early, Effects: 1, Callbacks: "SUCCESS"},
			"confirm/" + payer + "/000000": {Response: "400", Status: unpaid},
			"confirm/" + payer + "/12345":  {Response: "400", Status: unpaid},
			"confirm//123456":              {Response: "400", Status: unpaid},
			"cancel//":                     {Response: "303", Status: unpaid},
			"close//":                      {Response: "200", Status: unpaid},
			"odd/" + payer + "/123456":     {Response: "400", Status: unpaid},
		})
	stubtest.CheckOutcomes(t, outcomes, func(t *testing.T, quirks string) stubtest.Trial {
		b := newBench(t, quirks)
		p := b.create()
		if got := b.status(p); got != "INITIATED" {
			t.Error(got)
		}
		once := ""
		pay := func(row string) string {
			if !strings.Contains(row, "/") {
				row = "confirm/" + row + "/123456"
			}
			parts := strings.Split(row, "/")
			status, _ := b.press(p, parts[0], parts[1], parts[2])
			once = b.status(p)
			return fmt.Sprint(status)
		}
		lookup := func() string {
			end := b.status(p)
			b.press(p, "confirm", payer, "123456") // the page takes no payment any more
			time.Sleep(time.Minute)
			return once + " | " + end
		}
		return stubtest.Trial{Stub: b.Stub, Pay: pay, Status: lookup}
	})
}

func TestNotificationHasNoOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		p := b.create()
		b.press(p, "confirm", payer, "123456")
		time.Sleep(time.Minute)
		got := b.Callbacks.All()[0]
		fields := stubtest.Parse[map[string]string](t, got.Body)
		if len(fields) != 3 || fields["notif_token"] != p.NotifToken || fields["txnid"] == "" || got.Method != "POST" {
			t.Error(got)
		}
	})
}

func TestNotificationIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		b.Callbacks.Respond(500)
		b.press(b.create(), "confirm", payer, "123456")
		if time.Sleep(24 * time.Hour); len(b.Callbacks.All()) != 1 {
			t.Error(b.Words("status"))
		}
	})
}

func TestClosedPagesTakeNoPayment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		cancelled, expired := b.create(), b.create("ORD1", "ORD2")
		b.press(cancelled, "cancel", "", "")
		if _, text := b.press(cancelled, "confirm", payer, "123456"); !strings.Contains(text, "cancelled") {
			t.Error(text)
		}
		time.Sleep(10 * time.Minute)
		if _, text := b.press(expired, "confirm", payer, "123456"); !strings.Contains(text, "expired") {
			t.Error(text)
		}
		if b.Effects("") != 0 {
			t.Error("a closed page took a payment")
		}
		if status, _ := b.Do("GET", "/payment/pay_token/v1x", ""); status != 404 {
			t.Error(status)
		}
	})
}

func TestOrderIDIsUniqueForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		b.create()
		for range 2 {
			status, text := b.post(base+"webpayment", valid)
			if code := stubtest.Parse[struct{ Code int }](t, text).Code; status != 400 || code != 1204 {
				t.Errorf("repeat: %d %s", status, text)
			}
			time.Sleep(80 * 24 * time.Hour)
			b.token = b.mint("ci")
		}
		b.create("ORD1", "ORD1-2")
		b.token = b.mint("sn")
		body := strings.Replace(valid, "-ci-", "-sn-", 1)
		if status, text := b.post("/orange-money-webpay/sn/v1/webpayment", body); status != 201 {
			t.Errorf("another merchant's order_id: %d %s", status, text)
		}
	})
}

func TestSegments(t *testing.T) {
	for segment, currency := range map[string]string{"ci": "XOF", "bf": "XOF", "sn": "XOF", "cm": "XAF", "dev": "OUV"} {
		b := newBench(t, "")
		b.token = b.mint(segment)
		for _, c := range []struct {
			path, currency string
			status, code   int
		}{
			{segment, currency, 201, 0}, {segment, "USD", 400, 22}, {"cd", currency, 404, 60},
			{"tn", currency, 404, 60}, {map[bool]string{true: "bf", false: "ci"}[segment == "ci"], currency, 404, 60},
		} {
			body := strings.NewReplacer("-ci-", "-"+segment+"-", "XOF", c.currency).Replace(valid)
			status, text := b.post("/orange-money-webpay/"+c.path+"/v1/webpayment", body)
			if got := stubtest.Parse[struct{ Code int }](t, text).Code; status != c.status || got != c.code {
				t.Errorf("%s at %s in %s: %d %s", segment, c.path, c.currency, status, text)
			}
		}
	}
}
