package pay_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mobilegateway/functions/pay"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
)

const (
	order     = "DemoShop_1001"
	effect    = "pay " + order
	firstPoll = time.Minute
)

func shop(t testing.TB) *operationtest.World {
	t.Helper()
	w := operationtest.New(t)
	operation := &pay.Operation{Desk: w.Desk, Callbacks: w.Callbacks, FirstPoll: firstPoll}
	return w.Serve("pay", operation.Route())
}

func load(t testing.TB, channel string) *operationtest.Event {
	t.Helper()
	return operationtest.Load(t, "testdata/event-"+channel+".json")
}

func web(t testing.TB) *operationtest.Event  { return load(t, "web") }
func ussd(t testing.TB) *operationtest.Event { return load(t, "ussd") }

func TestGolden(t *testing.T) {
	for _, channel := range []string{"web", "tpe", "ussd"} {
		t.Run("specification, Mobile money: "+channel, func(t *testing.T) {
			w := shop(t)
			golden := load(t, channel)
			operationtest.Golden(t, "testdata/request-"+channel+".json", []byte(golden.Body()))
			operationtest.GoldenAnswer(t, "testdata/answer-"+channel+".json", w.Do(t, golden))
			sent, err := json.Marshal(w.Driver.Calls()[0].Pay)
			if err != nil {
				t.Fatal(err)
			}
			operationtest.Golden(t, "testdata/upstream-"+channel+".json", sent)
		})
	}
}

func TestCounts(t *testing.T) {
	for _, channel := range []string{"web", "ussd"} {
		w := shop(t)
		first := w.Do(t, load(t, channel)).Succeeds(t, 201)
		w.Counts(t, 1, 0, 1, 1)
		w.Do(t, load(t, channel)).Replays(t, first)
		w.Counts(t, 2, 0, 1, 1)
	}
}

// decision "pay-web".
func TestWeb(t *testing.T) {
	w := shop(t)
	answer := w.Do(t, web(t)).Succeeds(t, 201)
	if answer.Raw("status") != "201" || answer.Text("message") != "OK" || answer.Text("pay_token") != "pt-"+order || answer.Text("notif_token") != "nt-"+order {
		t.Errorf("decision pay-web: %s", answer.Body)
	}
	if answer.Text("payment_url") != "https://pay.example.com/page?a=1&token=pt-"+order || strings.Contains(answer.Body, `\u0026`) {
		t.Errorf("decision pay-web: payment_url %s", answer.Raw("payment_url"))
	}
	stored := w.Only(t, ledger.Payment)
	if stored.Status != ledger.Pending || stored.NotifToken != "nt-"+order || !stored.Due.Equal(w.Clock.Now().Add(firstPoll)) {
		t.Errorf("decision pay-poll: stored %+v", stored)
	}
}

// decision "pay-terminal", "pay-extra-fields" and "pay-optional-fields".
func TestTerminal(t *testing.T) {
	for _, channel := range []string{"tpe", "ussd"} {
		t.Run("decision pay-terminal: "+channel, func(t *testing.T) {
			w := shop(t)
			answer := w.Do(t, load(t, channel)).Succeeds(t, 201)
			want := map[string]string{
				"meta.type": "payment", "meta.source": "orange", "meta.channel": channel, "status": "pending", "amount": "1500",
				"order-id": order, "currency": "XOF", "reference": "DemoShop", "country-code": "ci", "user_msisdn": operationtest.MSISDN,
				"otp_code": operationtest.OTP, "date": "2096-11-21 10:00:00", "extTransaction-id": "op-" + order,
			}
			for path, text := range want {
				if got := answer.Text(path); got != text {
					t.Errorf("decision pay-terminal: %s is %q, want %q", path, got, text)
				}
			}
			id := answer.Text("Transaction-id")
			if len(id) != 36 || id != answer.Text("intTransaction-id") || answer.Text("statusDescription") == "" {
				t.Errorf("decision pay-extra-fields: %s", answer.Body)
			}
		})
	}
	t.Run("decision pay-optional-fields: no code, no field", func(t *testing.T) {
		for _, absent := range []*operationtest.Event{ussd(t).Remove("otp_code"), ussd(t).Set("otp_code", ""), ussd(t).Set("otp_code", nil)} {
			answer := shop(t).Do(t, absent).Succeeds(t, 201)
			if answer.Raw("otp_code") != "" {
				t.Errorf("otp_code %s", answer.Raw("otp_code"))
			}
		}
		shop(t).Do(t, web(t).Set("user_msisdn", "").Set("otp_code", "")).Succeeds(t, 201)
	})
}

// decision "pay-state".
func TestState(t *testing.T) {
	for name, state := range map[string]string{
		"percent escapes":     "a%20b%2Bc%2f%",
		"HTML":                `<a href="x">&amp;</a>'`,
		"other scripts":       "état 支払い 🎁",
		"line separators":     "a\u2028b\u2029c",
		"exactly 1,024 bytes": strings.Repeat("é", 512),
		"quotes and slashes":  `"\/\\"`,
		"what an answer has":  `,"Transaction-id":`,
		"spaces around":       "  x  ",
	} {
		for _, channel := range []string{"web", "ussd"} {
			t.Run("decision pay-state: "+name+" on "+channel, func(t *testing.T) {
				w := shop(t)
				answer := w.Do(t, load(t, channel).Set("state", state)).Succeeds(t, 201)
				if got := answer.Text("state"); got != state {
					t.Errorf("got %q, want %q", got, state)
				}
				if strings.ContainsAny(state, "<>&") && !strings.Contains(answer.Body, "&amp;") {
					t.Errorf("escaped for HTML: %s", answer.Body)
				}
				if w.Only(t, ledger.Payment).MerchantState != state || w.Driver.Calls()[0].Pay.State != state {
					t.Error("decision pay-state: another state was stored or sent")
				}
				if channel == "ussd" && answer.Text("otp_code") != operationtest.OTP {
					t.Errorf("decision pay-otp: lost in %s", answer.Body)
				}
			})
		}
	}
}

// decision "pay-country-code" and "pay-lang".
func TestRouting(t *testing.T) {
	for sent, mco := range map[string]string{"ci": "OCI", "CI": "OCI", "Ci": "OCI", "cd": "ODC"} {
		t.Run("decision pay-country-code: "+sent+" is echoed as sent", func(t *testing.T) {
			w := shop(t)
			e := ussd(t).Header("country-code", sent)
			if mco == "ODC" {
				e.Set("currency", "USD").Set("user_msisdn", "0812345678")
			}
			answer := w.Do(t, e).Succeeds(t, 201)
			if answer.Text("country-code") != sent || w.Driver.Calls()[0].Call.MCO != mco {
				t.Errorf("echo %s, sent to %s", answer.Text("country-code"), w.Driver.Calls()[0].Call.MCO)
			}
		})
	}
	for sent, used := range map[string]string{"fr": "fr", "FR": "fr", "en": "en", "pt": "en", "XX": "en"} {
		t.Run("decision pay-lang: "+sent, func(t *testing.T) {
			w := shop(t)
			w.Do(t, web(t).Header("lang", sent)).Succeeds(t, 201)
			if got := w.Driver.Calls()[0].Pay.Lang; got != used || w.Only(t, ledger.Payment).Lang != used {
				t.Errorf("lang %s, want %s", got, used)
			}
		})
	}
	t.Run("decision pay-terminal: mno-name in any case, answered in lower case", func(t *testing.T) {
		answer := shop(t).Do(t, ussd(t).Header("mno-name", "MTN")).Succeeds(t, 201)
		if answer.Text("meta.source") != "mtn" {
			t.Errorf("source %s", answer.Text("meta.source"))
		}
	})
}

// decision "pay-terminal": national or international form, echoed as sent.
func TestPurchaser(t *testing.T) {
	for _, number := range []string{"0709998877", "2250709998877", "+2250709998877", "002250709998877"} {
		t.Run("decision pay-terminal: user_msisdn "+number, func(t *testing.T) {
			answer := shop(t).Do(t, ussd(t).Set("user_msisdn", number)).Succeeds(t, 201)
			if got := answer.Text("user_msisdn"); got != number {
				t.Errorf("echo %s", got)
			}
		})
	}
	t.Run("decision pay-terminal: optional on the web", func(t *testing.T) {
		w := shop(t)
		w.Do(t, web(t)).Succeeds(t, 201)
		w.Do(t, web(t).Set("order_id", "DemoShop_2").Set("user_msisdn", operationtest.MSISDN)).Succeeds(t, 201)
		if got := w.Driver.Calls()[1].Pay.MSISDN; got != operationtest.MSISDN {
			t.Errorf("sent %s", got)
		}
	})
}

// decision "amount-form" and "charge-odc-unit": pay takes the plain currency, in DR Congo too.
func TestAmounts(t *testing.T) {
	cases := []struct {
		country, currency, amount, echo string
		minor                           int64 // 0: refused
	}{
		{"CI", "XOF", `1500`, "1500", 1500}, {"SN", "XOF", `"1500.00"`, "1500.00", 1500}, {"BF", "XOF", `1.5`, "", 0},
		{"CM", "XAF", `"100"`, "100", 100}, {"TN", "TND", `1.250`, "1.250", 1250}, {"TN", "TND", `1.2501`, "", 0},
		{"CD", "USD", `15`, "15", 1500}, {"CD", "USD", `"0.15"`, "0.15", 15}, {"CD", "USD", `0.155`, "", 0}, {"CD", "USD", `0.00`, "", 0},
		{"CI", "XOF", `-1`, "", 0}, {"CI", "XOF", `1e3`, "", 0}, {"CI", "XOF", `1234567890123`, "", 0},
	}
	for _, c := range cases {
		t.Run("decision amount-form: "+c.country+" "+c.amount, func(t *testing.T) {
			w := shop(t)
			e := ussd(t).Header("country-code", c.country).Header("channel", "tpe").Set("currency", c.currency).Set("amount", json.RawMessage(c.amount))
			answer := w.Do(t, e.Set("user_msisdn", numbers[c.country]))
			if c.minor == 0 {
				answer.Fails(t, 400, "SVC0002", "amount")
				w.Untouched(t)
				return
			}
			answer.Succeeds(t, 201)
			if got := w.Only(t, ledger.Payment).Minor; got != c.minor || answer.Text("amount") != c.echo {
				t.Errorf("%d minor units, echo %s", got, answer.Raw("amount"))
			}
		})
	}
}

// numbers are purchasers' by country.
var numbers = map[string]string{
	"CI": "0701020304", "CD": "0812345678", "CM": "650000000", "SN": "770000000", "TN": "20000000", "BF": "70000000",
}

// decision "base-url": operators may be given another base than merchants see.
func TestCallbackBase(t *testing.T) {
	w := operationtest.New(t)
	operation := &pay.Operation{Desk: w.Desk, Callbacks: w.Callbacks, FirstPoll: firstPoll, CallbackBase: "https://operators.example.com"}
	answer := w.Serve("pay", operation.Route()).Do(t, web(t)).Succeeds(t, 201)
	if got := w.Driver.Calls()[0].Pay.NotifyURL; !strings.HasPrefix(got, "https://operators.example.com/callbacks/v1/payments/orange/"+order+"/") {
		t.Errorf("decision base-url: callback %s", got)
	}
	if strings.Contains(answer.Body, "operators.example.com") {
		t.Errorf("decision base-url: the merchant sees the operators' domain: %s", answer.Body)
	}
}

// decision "pay-notif-url".
func TestNotifURL(t *testing.T) {
	t.Run("decision pay-notif-url: the body's", func(t *testing.T) {
		w := shop(t)
		w.Do(t, web(t)).Succeeds(t, 201)
		if got := w.Only(t, ledger.Payment).NotifyURL; got != "https://shop.example.com/notify" {
			t.Errorf("notif_url %s", got)
		}
	})
	t.Run("decision pay-notif-url: the provisioned one", func(t *testing.T) {
		w := shop(t)
		w.Do(t, web(t).Remove("notif_url")).Succeeds(t, 201)
		if got := w.Only(t, ledger.Payment).NotifyURL; got != "https://shop.example.com/provisioned" {
			t.Errorf("notif_url %s", got)
		}
	})
	t.Run("decision pay-notif-url: neither", func(t *testing.T) {
		e := web(t).Header("Authorization", operationtest.OtherToken).Header("mno-name", "sandbox").Set("order_id", "OtherShop_1").Remove("notif_url")
		shop(t).Do(t, e).Fails(t, 400, "SVC0002", "notif_url")
	})
	t.Run("decision callbacks: the operator is given ours", func(t *testing.T) {
		w := shop(t)
		w.Do(t, web(t)).Succeeds(t, 201)
		got := w.Driver.Calls()[0].Pay.NotifyURL
		if !strings.HasPrefix(got, operationtest.BaseURL+"/callbacks/v1/payments/orange/"+order+"/") {
			t.Errorf("callback %s", got)
		}
	})
}
