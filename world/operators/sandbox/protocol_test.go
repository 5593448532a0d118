package sandbox

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/world/operators/kit"
)

var update = flag.Bool("update", false, "write the golden files again")

// checkGolden compares JSON with testdata/name; addresses of this run are replaced.
func (r *testSandbox) checkGolden(name, body string) {
	r.Helper()
	var planned bytes.Buffer
	if err := json.Indent(&planned, []byte(body), "", "  "); err != nil {
		r.Fatalf("%s: %v in %s", name, err, body)
	}
	got := strings.NewReplacer(r.url, "SANDBOX", inboxURL, "INBOX").Replace(planned.String()) + "\n"
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			r.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		r.Fatal(err)
	}
	if got != string(want) {
		r.Errorf("%s:\n%s", name, got)
	}
}

func TestGoldenBodies(t *testing.T) {
	r := newTestSandbox(t)
	response := r.do("POST", chargePath, chargeJSON("Shop.c1", "ref-1", `500.0`), chargeHeaders)
	r.checkGolden("charge", response.body)
	if !strings.HasSuffix(response.header.Get("Location"),
		"/payment/v1/acr%3AOperatorAPIToken/transactions/amount/"+strings.Trim(textBetween(response.body,
			`"serverReferenceCode":`, ","), `"`)) {
		t.Errorf("Location %q", response.header.Get("Location"))
	}
	r.checkGolden("charge_refused", r.charge("Shop.c2", "1001").body)
	r.checkGolden("pay_tpe", r.do("POST", "/mobilemoney/v1", payJSON("Shop_1", "0700005555", "1234"),
		payHeaders).body)
	r.checkGolden("pay_web", r.pay("web", "Shop_2", "").body)
	r.checkGolden("sms", r.sms("Shop.s1", "5555").body)
	r.clock.Advance(600 * time.Millisecond)
	location := textBetween(r.sms("Shop.s1", "5555").header.Get("Location")+"|", r.url, "|")
	r.checkGolden("delivery_infos", r.do("GET", location, "", smsHeaders).body)
	r.clock.Advance(time.Second)
	r.checkGolden("receipt_object", r.inbox.bodies[0])
	r.checkGolden("receipt_array", r.inbox.bodies[1])
	r.checkGolden("notification", r.inbox.bodies[2])
	r.checkGolden("get_status", r.lookup("Shop_1").body)
	r.checkGolden("duplicate", r.sms("Shop.s1", "5555").body)
	r.checkGolden("down", r.charge("Shop.c3", "1009").body)
}

// refusal is a good request with one change, which is refused before anything happens, with a variable of the message.
type refusal struct {
	name, want, variable string
	old, new             string // "<header>:" and its value; else a part of the path, from a slash on, or of the body
}

func checkRefusals(t *testing.T, path, good string, headers map[string]string, refusals []refusal) {
	t.Helper()
	r := newTestSandbox(t)
	for _, c := range refusals {
		path, body, headers := path, good, headers
		if name, isHeader := strings.CutSuffix(c.old, ":"); isHeader {
			headers = withHeaders(headers, name, c.new)
		} else if strings.HasPrefix(c.old, "/") {
			path = strings.Replace(path, c.old, c.new, 1)
		} else {
			body = strings.Replace(body, c.old, c.new, 1)
		}
		response := r.do("POST", path, body, headers)
		equal(t, c.name, response.summary(), c.want)
		contains(t, c.name, response.body, c.variable)
		equal(t, "transactions after "+c.name, len(r.transactions("")), 0)
	}
}

func TestChargeRefusals(t *testing.T) {
	good := chargeJSON("Shop.c1", "ref-1", `"500"`)
	checkRefusals(t, chargePath, good, chargeHeaders, []refusal{
		{"no token", "401 900902", "", "Authorization:", ""},
		{"bad token", "401 900901", "", "Authorization:", "Bearer nope"},
		{"basic", "401 900901", "", "Authorization:", "Basic current"},
		{"media type", "415 SVC0002", "content-type", "Content-Type:", "text/plain"},
		{"long body", "413 SVC0002", "body", "{", "{" + strings.Repeat(" ", kit.MaxBodyBytes)},
		{"not JSON", "400 SVC0002", "body", good, "{"},
		{"no gw-token", "400 SVC0002", "gw-token", "gw-token:", ""},
		{"no gw-alias", "400 SVC0002", "gw-alias", "gw-alias:", ""},
		{"end user", "400 SVC0003", "amountTransaction.endUserId", `"acr:OperatorAPIToken"`, `"me"`},
		{"path", "404 900906", "", "/acr", "/x"},
		{"encoded twice", "404 900906", "", "/acr%3A", "/acr%253A"},
		{"zero", "400 SVC0002", "amount", `"500"`, `"0.00"`},
		{"negative", "400 SVC0002", "amount", `"500"`, `-5`},
		{"no amount", "400 SVC0002", "amount", `"amount":"500",`, ``},
		{"currency", "400 SVC0002", "currency", "XOF", "xof"},
		{"description", "400 SVC0002", "description", "Ring tone", ""},
		{"status", "400 SVC0003", "transactionOperationStatus", "Charged", "Refunded"},
		{"no reference", "400 SVC0002", "referenceCode", "ref-1", ""},
		{"unknown path", "404 900906", "", chargePath, "/payment/v2"},
	})
}

func TestChargeWithoutCorrelator(t *testing.T) {
	r := newTestSandbox(t)
	body := strings.Replace(chargeJSON("", "Shop~ref-1", `"500"`), `,"clientCorrelator":""`, "", 1)
	if response := r.do("POST", chargePath, body, chargeHeaders); response.status != 201 ||
		strings.Contains(response.body, "clientCorrelator") {
		t.Errorf("%s", response.body)
	}
	r.checkEffects("ref-1", 1)
}

func TestPaymentRefusals(t *testing.T) {
	checkRefusals(t, "/mobilemoney/v1", payJSON("Shop_1", "0700005555", ""), payHeaders, []refusal{
		{"mno-name", "400 SVC0002", "mno-name", "mno-name:", ""},
		{"country", "400 SVC0003", "country-code", "country-code:", "FR"},
		{"channel", "400 SVC0003", "web, tpe, ussd", "channel:", "sms"},
		{"lang", "400 SVC0002", "lang", "lang:", "fra"},
		{"currency", "400 SVC0002", "currency", "XOF", ""},
		{"order_id", "400 SVC0002", "order_id", "Shop_1", "Shop_" + strings.Repeat("1", 26)},
		{"amount", "400 SVC0002", "amount", "1500.00", `"1e3"`},
		{"return_url", "400 SVC0002", "return_url", "https://shop.example/back", "javascript:alert(1)//"},
		{"cancel_url", "400 SVC0002", "cancel_url", "https://shop.example/cancel", "/x"},
		{"notif_url", "400 SVC0002", "notif_url", "test/callbacks", "test\\u0000"},
		{"reference", "400 SVC0002", "reference", "Shop <Ltd>", strings.Repeat("r", 31)},
		{"user_msisdn", "400 SVC0002", "user_msisdn", "0700005555", ""},
		{"state", "400 SVC0002", "state", `"state"`, `"stat"`},
	})
}

func TestSMSRefusals(t *testing.T) {
	checkRefusals(t, smsPath, smsJSON("Shop.s1", "Hello"), smsHeaders, []refusal{
		{"application", "400 SVC0002", "X-OAPI-Application-Id", "X-OAPI-Application-Id:", ""},
		{"contact", "400 SVC0002", "X-OAPI-Contact-Id", "X-OAPI-Contact-Id:", ""},
		{"resource type", "400 SVC0003", "SMS_OSM", "X-OAPI-Resource-Type:", "x"},
		{"country", "400 SVC0003", "X-Operator-MCO", "X-Operator-MCO:", "OFR"},
		{"end user", "400 SVC0002", "X-Operator-ISE2", "X-Operator-ISE2:", ""},
		{"address", "400 SVC0004", "address", "acr:X-Operator-ISE2", "tel:+1"},
		{"sender of another country", "400 SVC0004", "tel:+2250000", "X-Operator-MCO:", "OSN"},
		{"short sender", "400 SVC0004", "tel:+1", "tel:+2250000", "tel:+1"},
		{"sender in the path", "404 SVC0004", "tel:+2250001", "/tel%3A%2B2250000", "/tel%3A%2B2250001"},
		{"no text", "400 SVC0002", "message", "Hello", ""},
		{"long text", "400 SVC0280", "160", "Hello", strings.Repeat("a", 161)},
		{"no name", "400 SVC0002", "senderName", `"Shop"`, `""`},
		{"no correlator", "400 SVC0002", "clientCorrelator", "Shop.s1", ""},
		{"notifyURL", "400 SVC0002", "notifyURL", "http://", "ftp://"},
	})
	r := newTestSandbox(t)
	checkSummary(t, "response", r.do("GET", smsPath+"/none/deliveryInfos", "", smsHeaders), "404 SVC0002")
}

func FuzzKeyForms(f *testing.F) {
	for _, key := range []string{"Shop.c1", "Shop~r", "Shop!00", "Shop_1", ".x", "", "a..b", "Sh op.c"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		for _, kind := range []string{kindCharge, kindPayment, kindSMS} {
			if !matchesKey(kind, key, key) {
				t.Errorf("%s: %q is not found by itself", kind, key)
			}
			_, sign, ownKey, ok := splitKey(key)
			if ok && sign != '!' && kind != kindPayment && !matchesKey(kind, key, ownKey) {
				t.Errorf("%s: %q is not found by the merchant's key %q", kind, key, ownKey)
			}
		}
	})
}
