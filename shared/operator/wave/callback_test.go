package wave_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/wave"
)

func event(kind, session string) string {
	return `{"id":"EV_1","type":"` + kind + `","data":` + session + `}`
}

func TestReadPaymentCallback(t *testing.T) {
	const completed, failed = "checkout.session.completed", "checkout.session.payment_failed"
	open, paid := operatortest.ReadFile(t, "session-open.json"), operatortest.ReadFile(t, "session-paid.json")
	read := func(status ledger.Status, reference string) operator.CallbackReport {
		return operator.CallbackReport{
			OrderID: "DemoShop_42", NotifToken: notifToken, StatusReport: operator.StatusReport{
				Status: status, Amount: "1000", Currency: "XOF", OperatorReference: reference,
			},
		}
	}
	suite(t).CheckCallbacks(t, map[operator.CallbackReport]map[string]string{
		read(ledger.Successful, "TCN4Y4ZC3FM"): {"completed": event(completed, paid)},
		read(ledger.Pending, ""):               {"failed attempt": event(failed, open)},
		read(ledger.Pending, "TCN4Y4ZC3FM"):    {"failed attempt of a paid session": event(failed, paid)},
		read("", "TCN4Y4ZC3FM"):                {"other event": event("checkout.session.new", paid)},
		read("", ""): {
			"completed, not final": event(completed, open),
			"unknown status":       event(completed, changed(t, "session-open.json", "payment_status", `"new"`)),
		},
		{}: {
			"test event": testEvent,
			"no data":    `{"id":"EV_1","type":"` + completed + `"}`,
			"no type":    `{"data":` + paid + `}`,
			"type twice": `{"type":"a","type":"` + completed + `","data":` + paid + `}`,
		},
	})
}

const testEvent = `{"id":"EV_1","type":"test.test_event","data":{"test_key":"test_value"}}`

// signature is Wave's header for a body: the HMAC-SHA256 of the time and the body.
func signature(key string, at time.Time, body string) string {
	seconds := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(seconds + body))
	return "t=" + seconds + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// The suite has the callbacks by each key of an account, and by the path only.
func TestVerifyStaticCallback(t *testing.T) {
	const key, second, body = "wave_sn_WHS_first", "wave_sn_WHS_second", testEvent
	signed := func(key string, age time.Duration) string { return signature(key, now.Add(-age), body) }
	good, seconds := signed(key, 0), strconv.FormatInt(now.Unix(), 10)
	cases := []struct {
		name, header, body, path string
		want                     bool
	}{
		{"two values during a rotation", "t=" + seconds + ",v1=00," + good[13:], body, callbackSecret, true},
		{"5 minutes old", signed(key, 5*time.Minute), body, callbackSecret, true},
		{"older", signed(key, 5*time.Minute+time.Second), body, callbackSecret, false},
		{"from the future", signed(key, -6*time.Minute), body, callbackSecret, false},
		{"far from now", signature(key, time.Unix(1<<62, 0), body), body, callbackSecret, false},
		{"empty key", signed("", 0), body, callbackSecret, false},
		{"altered body", good, body + " ", callbackSecret, false},
		{"altered time", "t=" + strconv.FormatInt(now.Unix()-1, 10) + good[12:], body, callbackSecret, false},
		{"no header", "", body, callbackSecret, false},
		{"no value", "t=" + seconds, body, callbackSecret, false},
		{"no time", good[13:], body, callbackSecret, false},
		{"other path", good, body, callbackSecret + "x", false},
		{"empty path", good, body, "", false},
		{"the secret as a bearer", "Bearer " + key, body, callbackSecret, true},
		{"the second secret as a bearer", "Bearer " + second, body, callbackSecret, true},
		{"another bearer", "Bearer other", body, callbackSecret, false},
		{"an empty bearer", "Bearer ", body, callbackSecret, false},
		{"a bearer with another path", "Bearer " + key, body, "x", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			webhooks := map[string]any{"first": key, "second": second}
			if strings.HasPrefix(c.name, "an empty") || c.name == "empty key" {
				delete(webhooks, "second")
			}
			bench := suite(t).With(map[string]any{"webhook_secrets": webhooks})
			driver := operatortest.New[*wave.Driver](t, bench, "https://api.wave.com")
			got, err := driver.VerifyStaticCallback(t.Context(), operator.StaticCallback{
				Platform: platform, AccountID: "a1", PathSecret: c.path, Body: []byte(c.body),
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
