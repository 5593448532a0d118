package payment_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/payment"
)

var (
	created = time.Date(2026, 3, 1, 23, 30, 0, 999e6, time.FixedZone("west", -3600))
	final   = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
)

func newPayment(channel string) *ledger.Entry {
	return &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: "DemoShop_7"}, Route: ledger.Route{Operator: "orange"},
		Request: ledger.Request{
			Channel: channel, Reference: "Demo & Söhne", CountryAsSent: "ci", State: `a%20b<&>"\`,
			MSISDN: "0701020304", TransactionID: "uuid-7",
		},
		Amount: ledger.Amount{AsSent: "500.00", Currency: "XOF"}, Outbox: ledger.Outbox{NotifToken: "nt-7"},
		Call: ledger.Call{OperatorReference: "MP-7"}, CreatedAt: created,
		Progress: ledger.Progress{FinalAt: final, Payer: "+2250799999999"},
	}
}

func failedPayment(reason ledger.FailureReason) *ledger.Entry {
	e := newPayment("ussd")
	e.FailureReason = reason
	return e
}

// decision "pay-failure-reason".
func TestFailureReason(t *testing.T) {
	for _, c := range []struct {
		status            ledger.Status
		stored            ledger.FailureReason
		want, description string
	}{
		{ledger.Pending, "", "", "Payment is waiting for the customer's approval"},
		{ledger.Successful, "", "", "Payment was successful"},
		{ledger.Cancelled, "", "refused-by-payer", "Payment was cancelled by the customer"},
		{ledger.Expired, "", "timed-out", "Payment expired without approval"},
		{ledger.Failed, "", "operator-error", "Payment failed: operator error"},
		{ledger.Failed, ledger.RefusedByPayer, "refused-by-payer", "Payment failed: refused by the payer"},
		{ledger.Failed, ledger.NotEnoughFunds, "not-enough-funds", "Payment failed: not enough funds"},
		{ledger.Failed, ledger.LimitReached, "limit", "Payment failed: a limit is reached"},
		{ledger.Failed, ledger.WalletUnknown, "wallet-unknown", "Payment failed: the payer's wallet is unknown"},
		{ledger.Failed, ledger.TimedOut, "timed-out", "Payment failed: timed out"},
	} {
		e := failedPayment(c.stored)
		for _, body := range [][]byte{payment.NotificationBody(e, c.status), payment.ResponseBody(e, c.status)} {
			got := decodeFields(t, body)
			reason, present := got["failureReason"]
			if present != (c.want != "") || present && reason != c.want || got["statusDescription"] != c.description {
				t.Errorf("%s with %q: %v, %q", c.status, c.stored, reason, got["statusDescription"])
			}
		}
	}
}

// decision "notifications": an operator's id that came after the final status is in getStatus, not in the notification.
func TestLateReference(t *testing.T) {
	e := newPayment("web")
	e.OperatorReference, e.LateReference = "", "late"
	notified := decodeFields(t, payment.NotificationBody(e, ledger.Cancelled))["extTransaction-id"]
	read := decodeFields(t, payment.ResponseBody(e, ledger.Cancelled))["extTransaction-id"]
	if notified != "" || read != "late" {
		t.Errorf("the notification has %q, getStatus %q; want \"\" and \"late\"", notified, read)
	}
}

// specification, Mobile money response and Payment notification.
func TestGolden(t *testing.T) {
	withOTP := payment.InsertOTP(payment.ResponseBody(newPayment("ussd"), ledger.Pending), "1234")
	for file, body := range map[string][]byte{
		"answer.json":              payment.ResponseBody(newPayment("tpe"), ledger.Pending),
		"answer-with-otp.json":     withOTP,
		"notification-web.json":    payment.NotificationBody(newPayment("web"), ledger.Successful),
		"notification-ussd.json":   payment.NotificationBody(newPayment("ussd"), ledger.Cancelled),
		"notification-failed.json": payment.NotificationBody(failedPayment(ledger.NotEnoughFunds), ledger.Failed),
	} {
		operationtest.Golden(t, "testdata/"+file, body)
	}
}

func decodeFields(t testing.TB, body []byte) map[string]any {
	t.Helper()
	var decoded map[string]any
	if err := json.Unmarshal(body, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// decision "pay-extra-fields", "pay-optional-fields" and "pay-state".
func TestFields(t *testing.T) {
	statuses := []ledger.Status{ledger.Pending, ledger.Successful, ledger.Failed, ledger.Cancelled, ledger.Expired}
	for _, status := range statuses {
		t.Run("decision pay-extra-fields: "+string(status), func(t *testing.T) {
			got := decodeFields(t, payment.ResponseBody(newPayment("tpe"), status))
			date := "2026-03-02 08:00:00"
			if status == ledger.Pending {
				date = "2026-03-02 00:30:00"
			}
			for name, want := range map[string]any{
				"date": date, "status": string(status), "intTransaction-id": got["Transaction-id"],
			} {
				if got[name] != want {
					t.Errorf("%s is %v, want %v", name, got[name], want)
				}
			}
			if got["statusDescription"] == "" {
				t.Error("no statusDescription")
			}
		})
	}
	t.Run("decision pay-optional-fields: an absent value is left out", func(t *testing.T) {
		e := newPayment("web")
		e.Request.MSISDN, e.OperatorReference = "", ""
		got := decodeFields(t, payment.ResponseBody(e, ledger.Pending))
		for _, name := range []string{"user_msisdn", "otp_code", "notif_token"} {
			if _, present := got[name]; present {
				t.Errorf("%s is %v", name, got[name])
			}
		}
		if reference, present := got["extTransaction-id"]; !present || reference != "" {
			t.Errorf("extTransaction-id is %v", reference)
		}
	})
	t.Run("decision pay-state: the same text, not escaped for HTML", func(t *testing.T) {
		e := newPayment("web")
		e.Request.State = "a%20b<&>\"\\\r\n\t\x00\x01\u2028🎁"
		for _, body := range [][]byte{
			payment.NotificationBody(e, ledger.Failed), payment.ResponseBody(e, ledger.Failed),
		} {
			if got := decodeFields(t, body)["state"]; got != e.Request.State {
				t.Errorf("state %q, want %q", got, e.Request.State)
			}
			if !strings.Contains(string(body), "<&>") {
				t.Errorf("escaped for HTML: %s", body)
			}
		}
	})
	t.Run("decision pay-extra-fields: notif_token only in the notification of the web channel", func(t *testing.T) {
		for channel, want := range map[string]any{"web": "nt-7", "tpe": nil, "ussd": nil} {
			body := payment.NotificationBody(newPayment(channel), ledger.Failed)
			if got := decodeFields(t, body)["notif_token"]; got != want {
				t.Errorf("%s: notif_token %v, want %v", channel, got, want)
			}
		}
	})
}

// decision "pay-otp".
func TestInsertOTP(t *testing.T) {
	e := newPayment("ussd")
	e.Request.State = `,"Transaction-id":"x"`
	e.Request.Reference = `\",\"Transaction-id\":`
	body := payment.ResponseBody(e, ledger.Pending)
	for _, code := range []string{"1234", `"<&\`, "é\n", "🎁"} {
		want := decodeFields(t, body)
		want["otp_code"] = code
		if diff := cmp.Diff(want, decodeFields(t, payment.InsertOTP(body, code))); diff != "" {
			t.Errorf("decision pay-otp: body with the code %q (-want +got):\n%s", code, diff)
		}
	}
	if got := payment.InsertOTP(body, ""); string(got) != string(body) {
		t.Errorf("decision pay-otp: an empty code changes %s", got)
	}
	if got := payment.InsertOTP([]byte(`{"a":1}`), "1234"); string(got) != `{"a":1}` {
		t.Errorf("decision pay-otp: another body becomes %s", got)
	}
}
