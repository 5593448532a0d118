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
	r.checkGolden("pay_tpe", r.do("POST", "/mobilemoney/v1", r.payJSON("Shop_1", "0700005555", "1234"),
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

// refusal is a request that is refused before anything happens, with a variable of the message.
type refusal struct {
	name, want, variable, path, body string
	headers                          map[string]string
}

func (r *testSandbox) checkRefusal(c refusal) {
	r.Helper()
	response := r.do("POST", c.path, c.body, c.headers)
	equal(r, c.name, response.summary(), c.want)
	contains(r, c.name, response.body, c.variable)
	equal(r, "transactions after "+c.name, len(r.transactions("")), 0)
}

func TestChargeRefusals(t *testing.T) {
	r := newTestSandbox(t)
	good := chargeJSON("Shop.c1", "ref-1", `"500"`)
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for _, c := range []refusal{
		{"no token", "401 900902", "", chargePath, good, withHeaders(chargeHeaders, "Authorization", "")},
		{"bad token", "401 900901", "", chargePath, good, withHeaders(chargeHeaders, "Authorization", "Bearer nope")},
		{"basic", "401 900901", "", chargePath, good, withHeaders(chargeHeaders, "Authorization", "Basic current")},
		{"media type", "415 SVC0002", "content-type", chargePath, good,
			withHeaders(chargeHeaders, "Content-Type", "text/plain")},
		{"long body", "413 SVC0002", "body", chargePath, good + strings.Repeat(" ", kit.MaxBodyBytes), chargeHeaders},
		{"not JSON", "400 SVC0002", "body", chargePath, "{", chargeHeaders},
		{"no gw-token", "400 SVC0002", "gw-token", chargePath, good, withHeaders(chargeHeaders, "gw-token", "")},
		{"no gw-alias", "400 SVC0002", "gw-alias", chargePath, good, withHeaders(chargeHeaders, "gw-alias", "")},
		{"end user", "400 SVC0003", "amountTransaction.endUserId", chargePath,
			replace(`"acr:OperatorAPIToken"`, `"me"`), chargeHeaders},
		{"path", "404 900906", "", strings.Replace(chargePath, "acr", "x", 1), good, chargeHeaders},
		{"encoded twice", "404 900906", "", strings.Replace(chargePath, "%3A", "%253A", 1), good, chargeHeaders},
		{"zero", "400 SVC0002", "amount", chargePath, replace(`"500"`, `"0.00"`), chargeHeaders},
		{"negative", "400 SVC0002", "amount", chargePath, replace(`"500"`, `-5`), chargeHeaders},
		{"no amount", "400 SVC0002", "amount", chargePath, replace(`"amount":"500",`, ``), chargeHeaders},
		{"currency", "400 SVC0002", "currency", chargePath, replace("XOF", "xof"), chargeHeaders},
		{"description", "400 SVC0002", "description", chargePath, replace("Ring tone", ""), chargeHeaders},
		{"status", "400 SVC0003", "transactionOperationStatus", chargePath, replace("Charged", "Refunded"),
			chargeHeaders},
		{"no reference", "400 SVC0002", "referenceCode", chargePath, replace("ref-1", ""), chargeHeaders},
		{"unknown path", "404 900906", "", "/payment/v2", good, chargeHeaders},
	} {
		r.checkRefusal(c)
	}
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
	r := newTestSandbox(t)
	good := r.payJSON("Shop_1", "0700005555", "")
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for _, c := range []struct {
		name, want, variable, body string
		headers                    map[string]string
	}{
		{"mno-name", "400 SVC0002", "mno-name", good, withHeaders(payHeaders, "mno-name", "")},
		{"country", "400 SVC0003", "country-code", good, withHeaders(payHeaders, "country-code", "FR")},
		{"channel", "400 SVC0003", "web, tpe, ussd", good, withHeaders(payHeaders, "channel", "sms")},
		{"lang", "400 SVC0002", "lang", good, withHeaders(payHeaders, "lang", "fra")},
		{"currency", "400 SVC0002", "currency", replace("XOF", ""), payHeaders},
		{"order_id", "400 SVC0002", "order_id", replace("Shop_1", "Shop_"+strings.Repeat("1", 26)), payHeaders},
		{"amount", "400 SVC0002", "amount", replace("1500.00", `"1e3"`), payHeaders},
		{"return_url", "400 SVC0002", "return_url", replace("https://shop.example/back", "javascript:alert(1)//"),
			payHeaders},
		{"cancel_url", "400 SVC0002", "cancel_url", replace("https://shop.example/cancel", "/x"), payHeaders},
		{"notif_url", "400 SVC0002", "notif_url", replace("/callbacks", "\\u0000"), payHeaders},
		{"reference", "400 SVC0002", "reference", replace("Shop <Ltd>", strings.Repeat("r", 31)), payHeaders},
		{"user_msisdn", "400 SVC0002", "user_msisdn", replace("0700005555", ""), payHeaders},
		{"state", "400 SVC0002", "state", replace(`"state"`, `"stat"`), payHeaders},
	} {
		r.checkRefusal(refusal{c.name, c.want, c.variable, "/mobilemoney/v1", c.body, c.headers})
	}
}

func TestSMSRefusals(t *testing.T) {
	r := newTestSandbox(t)
	good := r.smsJSON("Shop.s1", "Hello")
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for _, c := range []refusal{
		{"application", "400 SVC0002", "X-OAPI-Application-Id", smsPath, good,
			withHeaders(smsHeaders, "X-OAPI-Application-Id", "")},
		{"contact", "400 SVC0002", "X-OAPI-Contact-Id", smsPath, good,
			withHeaders(smsHeaders, "X-OAPI-Contact-Id", "")},
		{"resource type", "400 SVC0003", "SMS_OSM", smsPath, good,
			withHeaders(smsHeaders, "X-OAPI-Resource-Type", "x")},
		{"country", "400 SVC0003", "X-Operator-MCO", smsPath, good, withHeaders(smsHeaders, "X-Operator-MCO", "OFR")},
		{"end user", "400 SVC0002", "X-Operator-ISE2", smsPath, good, withHeaders(smsHeaders, "X-Operator-ISE2", "")},
		{"address", "400 SVC0004", "address", smsPath, replace("acr:X-Operator-ISE2", "tel:+1"), smsHeaders},
		{"sender of another country", "400 SVC0004", "tel:+2250000", smsPath, good,
			withHeaders(smsHeaders, "X-Operator-MCO", "OSN")},
		{"short sender", "400 SVC0004", "tel:+1", smsPath, replace("tel:+2250000", "tel:+1"), smsHeaders},
		{"sender in the path", "404 SVC0004", "tel:+2250001", strings.Replace(smsPath, "0000", "0001", 1), good,
			smsHeaders},
		{"no text", "400 SVC0002", "message", smsPath, replace("Hello", ""), smsHeaders},
		{"long text", "400 SVC0280", "160", smsPath, replace("Hello", strings.Repeat("a", 161)), smsHeaders},
		{"no name", "400 SVC0002", "senderName", smsPath, replace(`"Shop"`, `""`), smsHeaders},
		{"no correlator", "400 SVC0002", "clientCorrelator", smsPath, replace("Shop.s1", ""), smsHeaders},
		{"notifyURL", "400 SVC0002", "notifyURL", smsPath, replace("http://", "ftp://"), smsHeaders},
	} {
		r.checkRefusal(c)
	}
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
