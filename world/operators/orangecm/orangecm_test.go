//nolint:misspell // Orange writes SUCCESSFULL with two L
package orangecm_test

import (
	"encoding/base64"
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
	for _, c := range []struct {
		msisdn    string
		response  int
		code      string // inittxnstatus of the response
		status    string // status in the lookup
		effects   int
		callbacks string
	}{
		{ordinary, 200, "200", "SUCCESSFULL", 1, "SUCCESSFULL"},
		{"690001001", 200, "200", "FAILED", 0, "FAILED"},
		{"690001002", 200, "60019", "FAILED", 0, ""},
		{"690001003", 200, "200", "PENDING", 0, ""},
		{"690001004", 200, "200", "SUCCESSFULL", 1, "SUCCESSFULL"},
		{"690001005", 0, "", "SUCCESSFULL", 1, "SUCCESSFULL"},
		{"690001006", 200, "200", "SUCCESSFULL", 1, "SUCCESSFULL SUCCESSFULL SUCCESSFULL"},
		{"690001007", 200, "200", "SUCCESSFULL", 1, "SUCCESSFULL FAILED"},
		{"690001008", 200, "200", "SUCCESSFULL", 1, "SUCCESSFULL"},
		{"690001009", 503, "", "<nil>", 0, ""},
		{"690001010", 200, "", "SUCCESSFULL", 1, "SUCCESSFULL"},
		{"690001011", 200, "200", "SUCCESSFULL", 1, ""},
		{"690002001", 200, "0066111", "FAILED", 0, ""},
		{"790000000", 200, "0066111", "FAILED", 0, ""},
		{"690002002", 400, "0064", "FAILED", 0, ""},
		{"690002003", 400, "0061", "FAILED", 0, ""},
		{"690002004", 200, "200", "EXPIRED", 0, "EXPIRED"},
		{"690002005", 200, "200", "CANCELLED", 0, "CANCELLED"},
	} {
		stubtest.Run(t, c.msisdn, func(t *testing.T) {
			b := newBench(t, "")
			response, text := b.pay(c.msisdn)
			if response != c.response || c.code != "" && stubtest.Field(t, text, "data.inittxnstatus") != c.code {
				t.Errorf("response %d %q, want %d %s", response, text, c.response, c.code)
			}
			if c.code != "" && c.code != "200" {
				status, id := stubtest.Field(t, text, "data.status"), stubtest.Field(t, text, "data.txnid")
				if status != "FAILED" || id != "<nil>" {
					t.Errorf("refusal %s, want FAILED without txnid", text)
				}
			}
			time.Sleep(time.Minute)
			if status, text := b.status(); status != 200 || stubtest.Field(t, text, "data.status") != c.status {
				t.Errorf("lookup %d %s, want %s", status, text, c.status)
			}
			if got := b.Effects(b.payToken); got != c.effects || b.Effects("ORDER-1") != got {
				t.Errorf("%d effects, want %d", got, c.effects)
			}
			for _, callback := range b.Callbacks.All() {
				if callback.Method != "POST" || callback.Path != "/cb/token" {
					t.Errorf("callback %s %s", callback.Method, callback.Path)
				}
				if callback.Header.Get("Authorization") != "" {
					t.Error("the callback has credentials")
				}
			}
			if got := b.Words("data.status"); got != c.callbacks {
				t.Errorf("callbacks %q, want %q", got, c.callbacks)
			}
		})
	}
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
		time.Sleep(3 * time.Second)
		if status, text := b.pay(ordinary); status != 401 || stubtest.Field(t, text, "fault") == "" {
			t.Errorf("expired: %d %s", status, text)
		}
		old := b.token
		_, text = b.newToken("stub-orangecm-secret")
		b.token = stubtest.Field(t, text, "access_token")
		if status, _ := b.pay(ordinary); b.token == old || status != 200 {
			t.Errorf("with a new token: %d", status)
		}
		_, calls := b.Do("GET", "/stub/v1/calls", "")
		if strings.Count(calls, `"operation":"token"`) != 4 || strings.Contains(calls, old) {
			t.Errorf("calls %s", calls)
		}
		_, calls = b.Do("GET", "/stub/v1/calls?key="+b.payToken, "")
		if strings.Count(calls, `"operation":"init"`) != 1 {
			t.Errorf("calls of the payToken %s, want init among them", calls)
		}
	})
}

func TestScriptedFaultsInTheOperatorsForms(t *testing.T) {
	for mode, want := range map[string]string{
		"401": `{"fault":{"code":900901`, "401-xml": `<ams:code>900901`, "403": `"code":900908`,
		"429": `"code":900800`, "422": `already used`, "503": `<html>`, "503-xml": `<ams:code>900807`,
	} {
		b := newBench(t, "")
		b.Script("pay", b.payToken, mode)
		if _, text := b.pay(ordinary); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", mode, text, want)
		}
		if status, _ := b.pay(ordinary); status != 200 {
			t.Errorf("%s: pay afterwards is %d, want 200", mode, status)
		}
	}
}
