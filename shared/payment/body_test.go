package payment_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/payment"
)

var (
	created = time.Date(2026, 3, 1, 23, 30, 0, 999e6, time.FixedZone("west", -3600))
	final   = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
)

func newPayment(channel string) *ledger.Entry {
	return &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: "DemoShop_7"}, Operator: "orange", Channel: channel, AmountAsSent: "500.00", Currency: "XOF",
		MerchantReference: "Demo & Söhne", CountryAsSent: "ci", MerchantState: `a%20b<&>"\`, MSISDN: "0701020304", TransactionID: "uuid-7", NotifToken: "nt-7",
		OperatorReference: "MP-7", CreatedAt: created, FinalAt: final, MSISDNReported: "+2250799999999",
	}
}

// specification, Mobile money response and Payment notification.
func TestGolden(t *testing.T) {
	operationtest.Golden(t, "testdata/answer.json", payment.ResponseBody(newPayment("tpe"), ledger.Pending))
	operationtest.Golden(t, "testdata/answer-with-otp.json", payment.InsertOTP(payment.ResponseBody(newPayment("ussd"), ledger.Pending), "1234"))
	operationtest.Golden(t, "testdata/notification-web.json", payment.NotificationBody(newPayment("web"), ledger.Successful))
	operationtest.Golden(t, "testdata/notification-ussd.json", payment.NotificationBody(newPayment("ussd"), ledger.Cancelled))
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
			if got["date"] != date || got["statusDescription"] == "" || got["status"] != string(status) || got["intTransaction-id"] != got["Transaction-id"] {
				t.Errorf("got %v", got)
			}
		})
	}
	t.Run("decision pay-optional-fields: what is absent is left out", func(t *testing.T) {
		e := newPayment("web")
		e.MSISDN, e.OperatorReference = "", ""
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
	t.Run("decision pay-state: byte for byte", func(t *testing.T) {
		body := payment.NotificationBody(newPayment("web"), ledger.Failed)
		if decodeFields(t, body)["state"] != newPayment("web").MerchantState || !strings.Contains(string(body), "<&>") {
			t.Errorf("got %s", body)
		}
	})
	t.Run("decision pay-extra-fields: notif_token on the web's notification alone", func(t *testing.T) {
		for channel, want := range map[string]any{"web": "nt-7", "tpe": nil, "ussd": nil} {
			if got := decodeFields(t, payment.NotificationBody(newPayment(channel), ledger.Failed))["notif_token"]; got != want {
				t.Errorf("%s: %v", channel, got)
			}
		}
	})
}

// decision "pay-otp".
func TestInsertOTP(t *testing.T) {
	e := newPayment("ussd")
	e.MerchantState = `,"Transaction-id":"x"`
	e.MerchantReference = `\",\"Transaction-id\":`
	body := payment.ResponseBody(e, ledger.Pending)
	for _, code := range []string{"1234", `"<&\`, "é\n", "🎁"} {
		got := decodeFields(t, payment.InsertOTP(body, code))
		want := decodeFields(t, body)
		if got["otp_code"] != code || len(got) != len(want)+1 || got["state"] != want["state"] || got["Transaction-id"] != want["Transaction-id"] {
			t.Errorf("decision pay-otp: %v", got)
		}
	}
	if got := payment.InsertOTP(body, ""); string(got) != string(body) {
		t.Errorf("decision pay-otp: an empty code changes %s", got)
	}
	if got := payment.InsertOTP([]byte(`{"a":1}`), "1234"); string(got) != `{"a":1}` {
		t.Errorf("decision pay-otp: another answer becomes %s", got)
	}
}
