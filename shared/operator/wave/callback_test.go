package wave_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/operator/wave"
)

func event(kind, session string) string {
	return `{"id":"EV_1","type":"` + kind + `","data":` + session + `}`
}

func TestReadPaymentCallback(t *testing.T) {
	const completed, failed = "checkout.session.completed", "checkout.session.payment_failed"
	open, paid := operatortest.ReadFile(t, "session-open.json"), operatortest.ReadFile(t, "session-paid.json")
	read := func(status ledger.Status, reference string) operator.CallbackReport {
		return operator.CallbackReport{OrderID: "DemoShop_42", StatusReport: operator.StatusReport{
			Status: status, Amount: "1000", Currency: "XOF", OperatorReference: reference,
		}}
	}
	cases := []struct {
		name, body string
		want       operator.CallbackReport
	}{
		{"completed", event(completed, paid), read(ledger.Successful, "TCN4Y4ZC3FM")},
		{"completed, not final", event(completed, open), read("", "")},
		{"failed attempt", event(failed, open), read(ledger.Pending, "")},
		{"failed attempt of a paid session", event(failed, paid), read(ledger.Pending, "TCN4Y4ZC3FM")},
		{"other event", event("checkout.session.new", paid), read("", "TCN4Y4ZC3FM")},
		{"unknown status", event(completed, changed(t, "session-open.json", "payment_status", `"new"`)), read("", "")},
		{"test event", testEvent, operator.CallbackReport{}},
		{"no data", `{"id":"EV_1","type":"` + completed + `"}`, operator.CallbackReport{}},
		{"no type", `{"data":` + paid + `}`, operator.CallbackReport{}},
		{"type twice", `{"type":"a","type":"` + completed + `","data":` + paid + `}`, operator.CallbackReport{}},
		{"HTML", `<html>`, operator.CallbackReport{}},
	}
	driver := newDriver(t, account("https://api.wave.com"))
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := driver.ReadPaymentCallback([]byte(c.body))
			if (len(got.NotifToken) == 32) != (got.OrderID != "") {
				t.Errorf("notif_token %q", got.NotifToken)
			}
			got.NotifToken = ""
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

const testEvent = `{"id":"EV_1","type":"test.test_event","data":{"test_key":"test_value"}}`

// signature is Wave's header for the test event.
func signature(at time.Time, key string) string {
	seconds := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(seconds + testEvent))
	return "t=" + seconds + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

func TestVerifyStaticCallback(t *testing.T) {
	const key, second, body = "wave_sn_WHS_first", "wave_sn_WHS_second", testEvent
	keys := map[string]any{"first": key, "second": second}
	good := signature(now, key)
	cases := []struct {
		name   string
		keys   map[string]any
		header string
		body   string
		path   string
		want   bool
	}{
		{"signed", keys, good, body, callbackSecret, true},
		{"second key", keys, signature(now, second), body, callbackSecret, true},
		{"only the second key", map[string]any{"second": second}, signature(now, second), body, callbackSecret, true},
		{"two values during a rotation", keys, "t=" + strconv.FormatInt(now.Unix(), 10) + ",v1=00," + good[13:], body,
			callbackSecret, true},
		{"5 minutes old", keys, signature(now.Add(-5*time.Minute), key), body, callbackSecret, true},
		{"older", keys, signature(now.Add(-5*time.Minute-time.Second), key), body, callbackSecret, false},
		{"from the future", keys, signature(now.Add(6*time.Minute), key), body, callbackSecret, false},
		{"far from now", keys, signature(time.Unix(1<<62, 0), key), body, callbackSecret, false},
		{"other key", keys, signature(now, "other"), body, callbackSecret, false},
		{"empty key", map[string]any{"first": key}, signature(now, ""), body, callbackSecret, false},
		{"altered body", keys, good, body + " ", callbackSecret, false},
		{"altered time", keys, "t=" + strconv.FormatInt(now.Unix()-1, 10) + good[12:], body, callbackSecret, false},
		{"no header", keys, "", body, callbackSecret, false},
		{"no value", keys, "t=" + strconv.FormatInt(now.Unix(), 10), body, callbackSecret, false},
		{"no time", keys, good[13:], body, callbackSecret, false},
		{"other path", keys, good, body, callbackSecret + "x", false},
		{"empty path", keys, good, body, "", false},
		{"the secret as a bearer", keys, "Bearer " + key, body, callbackSecret, true},
		{"the second secret as a bearer", keys, "Bearer " + second, body, callbackSecret, true},
		{"another bearer", keys, "Bearer other", body, callbackSecret, false},
		{"an empty bearer", map[string]any{"first": key}, "Bearer ", body, callbackSecret, false},
		{"a bearer with another path", keys, "Bearer " + key, body, "x", false},
		{"without webhook secrets the path decides", nil, "", body, callbackSecret, true},
		{"without webhook secrets, other path", nil, "", body, "x", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fields := account("https://api.wave.com")
			if c.keys != nil {
				fields["webhook_secrets"] = c.keys
			}
			got, err := newDriver(t, fields).VerifyStaticCallback(t.Context(), operator.StaticCallback{
				Platform: platform, AccountID: "sn", PathSecret: c.path, Body: []byte(c.body),
				Header: func(name string) string {
					isBearer := strings.HasPrefix(c.header, "Bearer ")
					if name == "Authorization" && isBearer || name == "Wave-Signature" && !isBearer {
						return c.header
					}
					return ""
				},
			})
			if got != c.want || err != nil {
				t.Errorf("VerifyStaticCallback = %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

func TestVerifyReadsRenewedSecrets(t *testing.T) {
	const newSecret = "a-new-callback-secret-of-enough-length"
	renewed := account("https://api.wave.com")
	renewed["callback_secret"] = newSecret
	source := &operatortest.RenewedSecret{
		Value:   operatortest.Secret(platform, "sn", account("https://api.wave.com")),
		Renewed: operatortest.Secret(platform, "sn", renewed),
	}
	clock := func() time.Time { return now }
	driver := wave.New(credentials.NewReader(source, clock, operator.CheckBaseURL), upstream.NewClient(nil), clock)
	callback := operator.StaticCallback{
		Platform: platform, AccountID: "sn", PathSecret: newSecret, Header: func(string) string { return "" },
	}
	if got, err := driver.VerifyStaticCallback(t.Context(), callback); !got || err != nil {
		t.Errorf("after a renewal: %v, %v", got, err)
	}
	callback.AccountID = "other"
	if got, err := driver.VerifyStaticCallback(t.Context(), callback); got || err != nil {
		t.Errorf("an unknown account: %v, %v", got, err)
	}
	*source = operatortest.RenewedSecret{} // down
	if got, err := driver.VerifyStaticCallback(t.Context(), callback); got || err == nil {
		t.Errorf("an unreadable secret: %v, %v", got, err)
	}
}
