//nolint:misspell // Orange writes SUCCESSFULL with two L
package orangecm_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/kits/stubtest"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/orangecm"
)

const (
	ordinary = "690000001"
	base     = "/omcoreapis/1.0.2/mp/"
)

type bench struct {
	*stubtest.Stub
	token, payToken string
}

func newBench(t *testing.T, quirks string) *bench {
	b := &bench{Stub: stubtest.NewStub(t, "orangecm", quirks, func(client *http.Client) http.Handler {
		return orangecm.New(kit.Config{Client: client}, orangecm.DefaultCredentials()).Handler()
	})}
	_, text := b.newToken("stub-orangecm-secret")
	b.token = stubtest.Field(t, text, "access_token")
	b.initialize()
	return b
}

func (b *bench) initialize() {
	b.Helper()
	_, text := b.Do("POST", base+"init", "", b.headers()...)
	b.payToken = stubtest.Field(b.T, text, "data.payToken")
}

func (b *bench) newToken(secret string) (int, string) {
	basic := base64.StdEncoding.EncodeToString([]byte("stub-orangecm-key:" + secret))
	return b.Do("POST", "/token", "grant_type=client_credentials", "Authorization", "Basic "+basic,
		"Accept", "application/json", "Content-Type", "application/x-www-form-urlencoded")
}

func (b *bench) headers(more ...string) []string {
	return append([]string{"Authorization", "Bearer " + b.token,
		"X-AUTH-TOKEN", orangecm.DefaultCredentials().AuthToken()}, more...)
}

func (b *bench) body(msisdn string) string {
	return `{"subscriberMsisdn":"` + msisdn + `","channelUserMsisdn":"690000000","amount":"500","description":"d",` +
		`"orderId":"ORDER-1","pin":"2580","payToken":"` + b.payToken + `","notifUrl":"https://gateway.test/cb/token"}`
}

func (b *bench) pay(msisdn string) (int, string) {
	return b.Do("POST", base+"pay", b.body(msisdn), b.headers()...)
}

func (b *bench) status() (int, string) {
	return b.Do("GET", base+"paymentstatus/"+b.payToken, "", b.headers()...)
}

func TestOutcomes(t *testing.T) {
	words := stubtest.Words{Accepted: "200 200", Paid: "SUCCESSFULL", Refused: "FAILED", Undecided: "PENDING",
		Unknown: "<nil>", Success: "SUCCESSFULL", Failure: "FAILED"}
	outcomes := words.Outcomes("69000", nil, map[string]stubtest.Outcome{
		"690001002": {Response: "200 60019", Status: "FAILED"},
		"690002001": {Response: "200 0066111", Status: "FAILED"},
		"790000000": {Response: "200 0066111", Status: "FAILED"},
		"690002002": {Response: "400 0064", Status: "FAILED"},
		"690002003": {Response: "400 0061", Status: "FAILED"},
		"690002004": {Response: "200 200", Status: "EXPIRED", Callbacks: "EXPIRED"},
		"690002005": {Response: "200 200", Status: "CANCELLED", Callbacks: "CANCELLED"},
	})
	stubtest.CheckOutcomes(t, outcomes, func(t *testing.T, quirks string) stubtest.Trial {
		b := newBench(t, quirks)
		pay := func(number string) string {
			status, text := b.pay(number)
			if !json.Valid([]byte(text)) {
				return fmt.Sprint(status)
			}
			code := stubtest.Field(t, text, "data.inittxnstatus")
			word, id := stubtest.Field(t, text, "data.status"), stubtest.Field(t, text, "data.txnid")
			if code != "200" && (word != "FAILED" || id != "<nil>") {
				t.Errorf("refusal %s, want FAILED without txnid", text)
			}
			return fmt.Sprint(status, " ", code)
		}
		lookup := func() string {
			status, text := b.status()
			if status != 200 || b.Effects(b.payToken) != b.Effects("ORDER-1") {
				t.Errorf("lookup %d %s, effects by payToken %d", status, text, b.Effects(b.payToken))
			}
			return stubtest.Field(t, text, "data.status")
		}
		callbacks := func() string {
			for _, c := range b.Callbacks.All() {
				if c.Method != "POST" || c.Path != "/cb/token" || c.Header.Get("Authorization") != "" {
					t.Errorf("callback %s %s with %v, want no credentials", c.Method, c.Path, c.Header)
				}
			}
			return b.Words("data.status")
		}
		return stubtest.Trial{Stub: b.Stub, Pay: pay, Status: lookup, Words: callbacks, Key: "ORDER-1"}
	})
}

// TestWireForm compares whole responses with their golden forms, in which the random parts are replaced.
func TestWireForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		golden := func(text string) string {
			original := text
			for _, name := range []string{"id", "txnid", "createtime"} {
				text = strings.Replace(text, stubtest.Field(t, original, "data."+name), strings.ToUpper(name), 1)
			}
			return strings.ReplaceAll(text, b.payToken, "PAYTOKEN")
		}
		const head = `{"data":{"amount":500,"channelUserMsisdn":"690000000","confirmtxnmessage":`
		const middle = `,"createtime":"CREATETIME","description":"d","id":ID,` +
			`"inittxnmessage":"The payer must confirm the payment with his PIN","inittxnstatus":"200",` +
			`"notifUrl":"https://gateway.test/cb/token","payToken":"PAYTOKEN","status":"`
		const tail = `","subscriberMsisdn":"690000001","txnid":"TXNID","txnmode":"ORDER-1"},"message":"`
		_, text := b.pay(ordinary)
		want := head + `null,"confirmtxnstatus":null` + middle + "PENDING" + tail +
			`Merchant payment successfully initiated"}`
		if golden(text) != want {
			t.Errorf("pay:\n%s, want\n%s", golden(text), want)
		}
		time.Sleep(3 * time.Second)
		_, text = b.status()
		want = head + `"Payment successful","confirmtxnstatus":"200"` + middle + "SUCCESSFULL" + tail +
			`Transaction retrieved successfully"}`
		if golden(text) != want {
			t.Errorf("lookup:\n%s, want\n%s", golden(text), want)
		}
		if len(b.payToken) != 28 || !strings.HasPrefix(b.payToken, "MP000101") {
			t.Errorf("payToken %s", b.payToken)
		}
	})
}

func TestPayTokenIsUsedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		if _, text := b.status(); stubtest.Field(t, text, "data.status") != "<nil>" {
			t.Errorf("lookup before pay: %s", text)
		}
		b.pay(ordinary)
		for range 2 {
			if status, text := b.pay("690000002"); status != 422 {
				t.Errorf("repeat: %d %s, want 422", status, text)
			}
			if status, text := b.Do("GET", base+"push/"+b.payToken, "", b.headers()...); status != 200 {
				t.Errorf("push: %d %s", status, text)
			}
			time.Sleep(time.Minute)
		}
		if b.Effects("ORDER-1") != 1 {
			t.Error("want one effect")
		}
	})
}

func TestRepeatedOrderIsASecondPayment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		b.pay(ordinary)
		b.initialize()
		b.pay(ordinary)
		time.Sleep(time.Minute)
		if b.Effects("ORDER-1") != 2 || b.Effects(b.payToken) != 1 {
			t.Error("want two effects for the order, one for the payToken")
		}
	})
}

func TestRefusalsLeaveThePayTokenUnused(t *testing.T) {
	b := newBench(t, "")
	valid := b.body(ordinary)
	for _, c := range []struct {
		name, body string
		headers    []string
		status     int
		code       string // inittxnstatus, or the code of the gateway's fault
	}{
		{"token", valid, []string{"Authorization", "Bearer x"}, 401, "900901"},
		{"auth token", valid, []string{"X-AUTH-TOKEN", "x"}, 403, "900908"},
		{"no JSON", "<xml>", nil, 400, ""},
		{"channel", strings.Replace(valid, "690000000", "690000009", 1), nil, 400, "0063"},
		{"PIN", strings.Replace(valid, "2580", "0000", 1), nil, 400, "0068"},
		{"payToken", strings.Replace(valid, b.payToken, "MP1", 1), nil, 400, "0069"},
		{"order", strings.Replace(valid, "ORDER-1", "", 1), nil, 400, "0070"},
		{"amount as a number", strings.Replace(valid, `"500"`, `500`, 1), nil, 400, ""},
		{"decimals", strings.Replace(valid, `"500"`, `"5.5"`, 1), nil, 400, ""},
		{"leading zero", strings.Replace(valid, `"500"`, `"0500"`, 1), nil, 400, ""},
		{"international number", strings.Replace(valid, ordinary, "237"+ordinary, 1), nil, 400, "0062"},
	} {
		status, text := b.Do("POST", base+"pay", c.body, b.headers(c.headers...)...)
		if status != c.status || !strings.Contains(text, c.code) {
			t.Errorf("%s: %d %s, want %d %s", c.name, status, text, c.status, c.code)
		}
	}
	if status, text := b.pay(ordinary); status != 200 {
		t.Errorf("pay after the refusals: %d %s", status, text)
	}
}

func TestQuirks(t *testing.T) {
	lookup := func(want string) func(*bench) bool {
		return func(b *bench) bool { _, text := b.status(); return strings.Contains(text, want) }
	}
	again := func(want int) func(*bench) bool {
		return func(b *bench) bool {
			b.initialize()
			status, _ := b.Do("POST", base+"pay",
				strings.Replace(b.body("690001002"), "ORDER-1", "ORDER-1-ORDER-1-ORDER-1", 1), b.headers()...)
			return status == want
		}
	}
	callback := func(want string) func(*bench) bool {
		return func(b *bench) bool { return strings.Contains(fmt.Sprint(b.Callbacks.All()), want) }
	}
	attempts := func(want int) func(*bench) bool {
		return func(b *bench) bool {
			b.Callbacks.Respond(500)
			b.initialize()
			b.pay(ordinary)
			time.Sleep(time.Hour / 2)
			return len(b.Callbacks.All()) == want+1
		}
	}
	gateway := func(want string) func(*bench) bool {
		return func(b *bench) bool { b.token = "x"; _, text := b.status(); return strings.HasPrefix(text, want) }
	}
	unpaid := func(want string) func(*bench) bool {
		return func(b *bench) bool {
			b.initialize()
			_, text := b.status()
			return stubtest.Field(b.T, text, "data.status") == want
		}
	}
	for _, c := range []struct {
		quirk, msisdn string
		off, on       func(*bench) bool
	}{
		{"refusals_400", ordinary, again(200), again(400)},
		{"order_id_20", ordinary, again(200), again(400)},
		{"unpaid_expired", ordinary, unpaid("<nil>"), unpaid("EXPIRED")},
		{"word_success", ordinary, lookup(`"SUCCESSFULL"`), lookup(`"SUCCESS"`)},
		{"word_successful", ordinary, lookup(`"SUCCESSFULL"`), lookup(`"SUCCESSFUL"`)},
		{"word_initiated", "690001003", lookup(`"PENDING"`), lookup(`"INITIATED"`)},
		{"word_accepted", "690001003", lookup(`"PENDING"`), lookup(`"SUCCESSFULL"`)},
		{"word_canceled", "690002005", lookup(`"CANCELLED"`), lookup(`"CANCELED"`)},
		{"amount_text", ordinary, lookup(`"amount":500`), lookup(`"amount":"500"`)},
		{"createtime_iso", ordinary, lookup(`"createtime":"946684`), lookup(`"createtime":"2000-01-01T00:00:00Z"`)},
		{"callback_short", ordinary, callback(`"txnmode":"ORDER-1"`), callback(`"status":"SUCCESSFULL"} `)},
		{"callback_retried", ordinary, attempts(1), attempts(3)},
		{"xml_faults", ordinary, gateway(`{"fault":{"code":900901`), gateway(`<ams:fault`)},
	} {
		for quirk, check := range map[string]func(*bench) bool{"token_60s": c.off, c.quirk: c.on} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, quirk)
				b.pay(c.msisdn)
				time.Sleep(30 * time.Second)
				if !check(b) {
					_, text := b.status()
					t.Errorf("%s with %s: %s %v", c.quirk, quirk, text, b.Callbacks.All())
				}
			})
		}
	}
}

func TestTokenCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		if status, text := b.newToken("x"); status != 401 || !strings.HasPrefix(text, "<ams:fault") {
			t.Errorf("wrong secret: %d %s, want an XML fault", status, text)
		}
		time.Sleep(time.Hour - 3*time.Second)
		_, text := b.newToken("stub-orangecm-secret")
		if stubtest.Field(t, text, "access_token") != b.token || stubtest.Field(t, text, "expires_in") != "3" {
			t.Errorf("%s, want the same token for 3 seconds", text)
		}
		_, calls := b.Do("GET", "/stub/v1/calls?key="+b.payToken, "")
		if strings.Count(calls, `"operation":"init"`) != 1 {
			t.Errorf("calls of the payToken %s, want init among them", calls)
		}
	})
	stubtest.CheckTokens(t, time.Hour, `"fault":`, func(t *testing.T) stubtest.TokenUser {
		b := newBench(t, "")
		renew := func() {
			_, text := b.newToken("stub-orangecm-secret")
			b.token = stubtest.Field(t, text, "access_token")
		}
		return stubtest.TokenUser{Stub: b.Stub, Renew: renew, Call: func() (int, string) { return b.pay(ordinary) }}
	})
}

func TestScriptedFaultsInTheOperatorsForms(t *testing.T) {
	for mode, want := range map[string]string{
		"401": `{"fault":{"code":900901`, "401-xml": `<ams:code>900901`, "403": `"code":900908`,
		"429": `"code":900800`, "422": `already used`, "503": `<html>`, "503-xml": `<ams:code>900807`,
	} {
		b := newBench(t, "")
		pay := func() (int, string) { return b.pay(ordinary) }
		b.CheckScript("pay", b.payToken, mode, want, pay)
		b.CheckScript("pay", b.payToken, "ok", "200 ", pay)
	}
}
