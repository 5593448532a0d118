package pay_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mobilegateway/functions/pay"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/strictjson"
)

const (
	order          = "DemoShop_1001"
	expectedEffect = "pay " + order
	firstPoll      = time.Minute
)

func newFixture(t testing.TB) *operationtest.Fixture {
	t.Helper()
	w := operationtest.New(t)
	operation := &pay.Operation{Pipeline: w.Pipeline, CallbackKeys: w.CallbackKeys, FirstPollDelay: firstPoll}
	return w.Serve("pay", operation.Route())
}

func loadEvent(t testing.TB, channel string) *operationtest.Event {
	t.Helper()
	return operationtest.LoadEvent(t, "testdata/event-"+channel+".json")
}

func webEvent(t testing.TB) *operationtest.Event  { return loadEvent(t, "web") }
func ussdEvent(t testing.TB) *operationtest.Event { return loadEvent(t, "ussd") }

// The responses and the calls are those of decisions "pay-web", "pay-terminal", "pay-extra-fields" and "callbacks".
func TestGolden(t *testing.T) {
	for _, channel := range []string{"web", "tpe", "ussd"} {
		t.Run("specification, Mobile money: "+channel, func(t *testing.T) {
			w := newFixture(t)
			golden := loadEvent(t, channel)
			operationtest.Golden(t, "testdata/request-"+channel+".json", []byte(golden.Body()))
			operationtest.GoldenResponse(t, "testdata/answer-"+channel+".json", w.Send(t, golden))
			operationtest.Golden(t, "testdata/upstream-"+channel+".json", strictjson.Marshal(w.Driver.Calls()[0].Pay))
		})
	}
}

// decision "pay-web".
func TestWeb(t *testing.T) {
	w, _ := webSuite.SendFirst(t)
	existing := w.OnlyEntry(t, ledger.Payment)
	if existing.Status != ledger.Pending || existing.Outbox.NotifToken != "nt-"+order ||
		existing.DriverData != "dd-"+order {
		t.Errorf("decision pay-web: stored status %s, notif_token %q, driver's data %q", existing.Status,
			existing.Outbox.NotifToken, existing.DriverData)
	}
	if !existing.DueAt.Equal(w.Clock.Now().Add(firstPoll)) {
		t.Errorf("decision pay-poll: due at %s, want the first poll", existing.DueAt)
	}
}

// decision "pay-optional-fields": without a code there is no field.
func TestTerminal(t *testing.T) {
	for _, absent := range []*operationtest.Event{
		ussdEvent(t).RemoveBodyPart("otp_code"), ussdEvent(t).SetBodyPart("otp_code", ""),
		ussdEvent(t).SetBodyPart("otp_code", nil),
	} {
		response := newFixture(t).Send(t, absent).AssertStatus(t, 201)
		if got := response.RawJSON("otp_code"); got != "" {
			t.Errorf("otp_code %s, want no field", got)
		}
	}
	e := webEvent(t).SetBodyPart("user_msisdn", "").SetBodyPart("otp_code", "")
	newFixture(t).Send(t, e).AssertStatus(t, 201)
}

// decision "pay-state".
func TestState(t *testing.T) {
	for name, state := range map[string]string{
		"percent escapes":       "a%20b%2Bc%2f%",
		"HTML":                  `<a href="x">&amp;</a>'`,
		"other scripts":         "état 支払い 🎁",
		"line ends and tabs":    "a\r\nb\nc\td",
		"line separators":       "a\u2028b\u2029c\u0085d",
		"control characters":    "\x00\x01\x1b\x7f\u009f",
		"noncharacters":         "\ufffd\ufffe\ufeff",
		"exactly 1,024 bytes":   strings.Repeat("é", 512),
		"quotes and slashes":    `"\/\\"`,
		"a part of a response":  `,"Transaction-id":`,
		"spaces around a value": "  x  ",
	} {
		forEachChannel(t, func(t *testing.T, channel string) {
			t.Run("decision pay-state: "+name, func(t *testing.T) { checkState(t, channel, state) })
		})
	}
	for name, state := range map[string]string{
		"a lone high surrogate": `"\ud83c"`, "a lone low surrogate": `"\udf81"`,
	} {
		t.Run("decision pay-state: "+name, func(t *testing.T) {
			e := webEvent(t).SetBodyPart("state", json.RawMessage(state))
			newFixture(t).Send(t, e).AssertError(t, 400, "SVC0002", "body")
		})
	}
	t.Run("decision pay-state: the bytes count after JSON decoding", func(t *testing.T) {
		escaped := json.RawMessage(`"` + strings.Repeat(`\u0061`, 1024) + `"`)
		newFixture(t).Send(t, webEvent(t).SetBodyPart("state", escaped)).AssertStatus(t, 201)
	})
}

// checkState checks that a state is the same text in the response, at the operator and in the ledger.
func checkState(t *testing.T, channel, state string) {
	t.Helper()
	w := newFixture(t)
	response := w.Send(t, loadEvent(t, channel).SetBodyPart("state", state)).AssertStatus(t, 201)
	response.AssertText(t, "state", state)
	if strings.ContainsAny(state, "<>&") && !strings.Contains(response.Body, "&amp;") {
		t.Errorf("escaped for HTML: %s", response.Body)
	}
	if stored := w.OnlyEntry(t, ledger.Payment).Request.State; stored != state {
		t.Errorf("stored %q, want %q", stored, state)
	}
	if sent := w.Driver.Calls()[0].Pay.State; sent != state {
		t.Errorf("sent %q to the operator, want %q", sent, state)
	}
	if channel == "ussd" {
		response.AssertText(t, "otp_code", operationtest.OTP)
	}
}

// decision "pay-country-code" and "pay-lang".
func TestRouting(t *testing.T) {
	for sent, mcoCode := range map[string]string{"ci": "OCI", "CI": "OCI", "Ci": "OCI", "cd": "ODC"} {
		t.Run("decision pay-country-code: "+sent+" is echoed as sent", func(t *testing.T) {
			w := newFixture(t)
			e := ussdEvent(t).SetHeader("country-code", sent)
			if mcoCode == "ODC" {
				e.SetBodyPart("currency", "USD").SetBodyPart("user_msisdn", "0812345678")
			}
			response := w.Send(t, e).AssertStatus(t, 201)
			response.AssertText(t, "country-code", sent)
			if got := w.Driver.Calls()[0].Call.MCO; got != mcoCode {
				t.Errorf("MCO %s, want %s", got, mcoCode)
			}
		})
	}
	for lang, used := range map[string]string{"fr": "fr", "FR": "fr", "en": "en", "pt": "en", "XX": "en"} {
		t.Run("decision pay-lang: "+lang, func(t *testing.T) {
			w := newFixture(t)
			w.Send(t, webEvent(t).SetHeader("lang", lang)).AssertStatus(t, 201)
			sent, stored := w.Driver.Calls()[0].Pay.Lang, w.OnlyEntry(t, ledger.Payment).Request.Lang
			if sent != used || stored != used {
				t.Errorf("sent %s, stored %s; want %s", sent, stored, used)
			}
		})
	}
	t.Run("decision pay-terminal: mno-name in any case, returned in lower case", func(t *testing.T) {
		response := newFixture(t).Send(t, ussdEvent(t).SetHeader("mno-name", "MTN")).AssertStatus(t, 201)
		response.AssertText(t, "meta.source", "mtn")
	})
}

// decision "pay-terminal": national or international form, echoed as sent.
func TestPayer(t *testing.T) {
	for _, number := range []string{"0709998877", "2250709998877", "+2250709998877", "002250709998877"} {
		t.Run("decision pay-terminal: user_msisdn "+number, func(t *testing.T) {
			response := newFixture(t).Send(t, ussdEvent(t).SetBodyPart("user_msisdn", number)).AssertStatus(t, 201)
			response.AssertText(t, "user_msisdn", number)
		})
	}
	t.Run("decision pay-terminal: optional on the web", func(t *testing.T) {
		w, _ := webSuite.SendFirst(t)
		e := orderEvent(t, "DemoShop_2").SetBodyPart("user_msisdn", operationtest.MSISDN)
		w.Send(t, e).AssertStatus(t, 201)
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
		{"CM", "XAF", `"100"`, "100", 100},
		{"TN", "TND", `1.250`, "1.250", 1250}, {"TN", "TND", `1.2501`, "", 0},
		{"CD", "USD", `15`, "15", 1500}, {"CD", "USD", `"0.15"`, "0.15", 15},
		{"CD", "USD", `0.155`, "", 0}, {"CD", "USD", `0.00`, "", 0},
		{"CI", "XOF", `-1`, "", 0}, {"CI", "XOF", `1e3`, "", 0}, {"CI", "XOF", `1234567890123`, "", 0},
	}
	for _, c := range cases {
		t.Run("decision amount-form: "+c.country+" "+c.amount, func(t *testing.T) {
			w := newFixture(t)
			e := loadEvent(t, "ussd").SetHeader("country-code", c.country).SetHeader("channel", "tpe").
				SetBodyPart("currency", c.currency).SetBodyPart("amount", json.RawMessage(c.amount))
			response := w.Send(t, e.SetBodyPart("user_msisdn", payerNumbers[c.country]))
			if c.minor == 0 {
				response.AssertError(t, 400, "SVC0002", "amount")
				w.AssertNoSideEffects(t)
				return
			}
			response.AssertStatus(t, 201)
			response.AssertText(t, "amount", c.echo)
			if got := w.OnlyEntry(t, ledger.Payment).Amount.Minor; got != c.minor {
				t.Errorf("%d minor units, want %d", got, c.minor)
			}
		})
	}
}

// payerNumbers has a valid number for each country.
var payerNumbers = map[string]string{
	"CI": "0701020304", "CD": "0812345678", "CM": "650000000", "SN": "770000000", "TN": "20000000", "BF": "70000000",
}

// decision "base-url": operators may get another base URL than merchants.
func TestCallbackBase(t *testing.T) {
	w := operationtest.New(t)
	operation := &pay.Operation{
		Pipeline: w.Pipeline, CallbackKeys: w.CallbackKeys, FirstPollDelay: firstPoll,
		CallbackBaseURL: "https://operators.example.com",
	}
	response := w.Serve("pay", operation.Route()).Send(t, webEvent(t)).AssertStatus(t, 201)
	want := "https://operators.example.com/callbacks/v1/payments/orange/" + order + "/"
	if got := w.Driver.Calls()[0].Pay.NotifyURL; !strings.HasPrefix(got, want) {
		t.Errorf("decision base-url: callback %s", got)
	}
	if strings.Contains(response.Body, "operators.example.com") {
		t.Errorf("decision base-url: the merchant sees the operators' domain: %s", response.Body)
	}
}

// decision "pay-notif-url".
func TestNotifURL(t *testing.T) {
	for name, c := range map[string]struct {
		event *operationtest.Event
		want  string
		from  ledger.AddressSource
	}{
		"the body's": {webEvent(t), "https://shop.example.com/notify", ledger.AddressOfRequest},
		"the provisioned one": {
			webEvent(t).RemoveBodyPart("notif_url"), "https://shop.example.com/provisioned", ledger.AddressOfProfile,
		},
	} {
		t.Run("decision pay-notif-url: "+name, func(t *testing.T) {
			w := newFixture(t)
			w.Send(t, c.event).AssertStatus(t, 201)
			if e := w.OnlyEntry(t, ledger.Payment); e.Outbox.URL != c.want || e.Outbox.From != c.from {
				t.Errorf("notif_url %s from %q, want %s from %q", e.Outbox.URL, e.Outbox.From, c.want, c.from)
			}
		})
	}
	t.Run("decision pay-notif-url: neither", func(t *testing.T) {
		e := orderEvent(t, "OtherShop_1").SetHeader("Authorization", operationtest.OtherToken).
			SetHeader("mno-name", "sandbox").RemoveBodyPart("notif_url")
		newFixture(t).Send(t, e).AssertError(t, 400, "SVC0002", "notif_url")
	})
}
