package sms_test

import (
	"strings"
	"testing"
	"time"

	"mobilegateway/functions/sms"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/strictjson"
)

// The parts of an SMS, in the specification's order.
const (
	root         = "outboundSMSMessageRequest"
	address      = root + ".address"
	sender       = root + ".senderAddress"
	text         = root + ".outboundSMSTextMessage.message"
	senderName   = root + ".senderName"
	correlator   = root + ".clientCorrelator"
	receipt      = root + ".receiptRequest"
	notifyURL    = receipt + ".notifyURL"
	callbackData = receipt + ".callbackData"
)

const (
	expectedEffect = "sms DemoShop.s-1001"
	shortCode      = "tel:+2250707"
	retention      = 90 * 24 * time.Hour
)

func newFixture(t testing.TB) *operationtest.Fixture {
	t.Helper()
	w := operationtest.New(t)
	return w.Serve("sms", newOperation(w).Route())
}

func newOperation(w *operationtest.Fixture) *sms.Operation {
	return &sms.Operation{
		Pipeline: w.Pipeline, CallbackKeys: w.CallbackKeys, Retention: retention,
		ApplicationID: operationtest.ApplicationID, ContactID: operationtest.ContactID,
	}
}

func newEvent(t testing.TB) *operationtest.Event {
	t.Helper()
	return operationtest.LoadEvent(t, "testdata/event-encoded.json")
}

func TestGolden(t *testing.T) {
	for _, form := range []string{"encoded", "decoded"} {
		t.Run("specification, SMS: the path "+form, func(t *testing.T) {
			golden := operationtest.LoadEvent(t, "testdata/event-"+form+".json")
			operationtest.Golden(t, "testdata/request.json", []byte(golden.Body()))
			operationtest.GoldenResponse(t, "testdata/answer.json", newFixture(t).Send(t, golden))
		})
	}
	t.Run("without receiptRequest", func(t *testing.T) {
		response := newFixture(t).Send(t, newEvent(t).RemoveBodyPart(receipt))
		operationtest.GoldenResponse(t, "testdata/answer-without-receipt.json", response)
	})
	t.Run("the call of the operator", func(t *testing.T) {
		w, _ := suite.SendFirst(t)
		operationtest.Golden(t, "testdata/upstream.json", strictjson.Marshal(w.Driver.Calls()[0].SMS))
	})
}

// decision "sms-success".
func TestSuccess(t *testing.T) {
	w, response := suite.SendFirst(t)
	existing := w.OnlyEntry(t, ledger.SMS)
	if location := response.Header["Location"]; !strings.HasSuffix(location, "/"+existing.ID+"/deliveryInfos") {
		t.Errorf("Location %s does not name the stored message %s", location, existing.ID)
	}
	if !existing.ExpireAt.Equal(w.Clock.Now().Add(retention)) {
		t.Errorf("decision retention: expires at %s", existing.ExpireAt)
	}
	if existing.Status != ledger.MessageWaiting {
		t.Errorf("decision sms-receipts: status %s, want %s", existing.Status, ledger.MessageWaiting)
	}
	if existing.Outbox.URL != "https://shop.example.com/receipts" || existing.Request.CallbackData != "cb-1001" {
		t.Errorf("decision sms-receipts: stored URL %q and data %q", existing.Outbox.URL, existing.Request.CallbackData)
	}
}

// decision "base-url": operators may get another base URL than merchants.
func TestCallbackBase(t *testing.T) {
	w := operationtest.New(t)
	operation := newOperation(w)
	operation.CallbackBaseURL = "https://operators.example.com"
	response := w.Serve("sms", operation.Route()).Send(t, newEvent(t)).AssertStatus(t, 201)
	const base = "https://operators.example.com/callbacks/v1/receipts/sandbox/"
	if got := w.Driver.Calls()[0].SMS.NotifyURL; !strings.HasPrefix(got, base) {
		t.Errorf("decision base-url: callback %s", got)
	}
	if got := response.Header["Location"]; !strings.HasPrefix(got, operationtest.BaseURL+"/") {
		t.Errorf("decision base-url: Location %s", got)
	}
}

// decision "sms-text".
func TestText(t *testing.T) {
	cases := []struct {
		name, message string
		fits          bool
	}{
		{"160 plain characters", strings.Repeat("a", 160), true},
		{"161 plain characters", strings.Repeat("a", 161), false},
		{"160 escaped characters", strings.Repeat("%20", 160), true},
		{"161 escaped characters", strings.Repeat("%20", 161), false},
		{"160 escaped characters of two bytes", strings.Repeat("%C3%A9", 160), true},
		{"161 escaped characters of two bytes", strings.Repeat("%c3%a9", 161), false},
		{"160 raw characters of two bytes", operationtest.LongText(160), true},
		{"161 raw characters of two bytes", operationtest.LongText(161), false},
		{"160 emoji", strings.Repeat("🎁", 160), true},
		{"a raw space makes it literal", "a " + strings.Repeat("%20", 52) + "bb", true},
		{"a raw space makes it literal, too long", "a " + strings.Repeat("%20", 53), false},
		{"an open percent makes it literal", "100%" + strings.Repeat("%20", 52), true},
		{"an open percent makes it literal, too long", "100%" + strings.Repeat("%20", 53), false},
		{"bytes that are not UTF-8 make it literal", "%FF" + strings.Repeat("%20", 52), true},
		{"bytes that are not UTF-8 make it literal, too long", "%FF" + strings.Repeat("%20", 53), false},
		{"plus is not a space", strings.Repeat("+", 160), true},
		{"line ends", "a\r\nb\tc", true},
		{"HTML", `<a href="x">&</a>`, true},
	}
	for _, c := range cases {
		t.Run("decision sms-text: "+c.name, func(t *testing.T) {
			w := newFixture(t)
			response := w.Send(t, newEvent(t).SetBodyPart(text, c.message))
			if !c.fits {
				response.AssertError(t, 400, "SVC0280", "160")
				w.AssertNoSideEffects(t)
				return
			}
			response.AssertStatus(t, 201).AssertText(t, text, c.message)
			if sent := w.Driver.Calls()[0].SMS.Message; sent != c.message {
				t.Errorf("sent %q, want %q", sent, c.message)
			}
			if strings.Contains(c.message, "<") && strings.Contains(response.Body, `\u003c`) {
				t.Errorf("escaped for HTML: %s", response.Body)
			}
		})
	}
}

// decision "sms-mco" and "sms-sender", in each of the six countries.
func TestCountries(t *testing.T) {
	prefixes := map[string]string{
		"OCI": "225", "ODC": "243", "OCD": "243", "OCM": "237", "OSN": "221", "OTN": "216", "OBF": "226",
	}
	for mcoCode, prefix := range prefixes {
		t.Run("decision sms-mco: "+mcoCode, func(t *testing.T) {
			w := newFixture(t)
			e := newEvent(t).SetHeader("X-Operator-MCO", mcoCode)
			e.SetPathParameter("senderAddress", "tel%3A%2B"+prefix+"12345").SetBodyPart(sender, "tel:+"+prefix+"12345")
			w.Send(t, e).AssertStatus(t, 201)
			if got := w.Driver.Calls()[0].Call.MCO; got != mcoCode && mcoCode != "OCD" {
				t.Errorf("sent to %s, want %s", got, mcoCode)
			}
			const foreign = "tel:+99912345"
			e.SetPathParameter("senderAddress", foreign).SetBodyPart(sender, foreign)
			w.Send(t, e).AssertError(t, 400, "SVC0004", foreign)
		})
	}
}

// decision "sms-sender": gw-alias replaces a missing X-Operator-ISE2.
func TestISE2(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*operationtest.Event)
		want   string
	}{
		"sent": {func(e *operationtest.Event) { e.SetHeader("X-Operator-ISE2", "ise2-7") }, "ise2-7"},
		"absent": {func(e *operationtest.Event) { e.SetHeader("X-Operator-ISE2") },
			operationtest.GWAlias},
		"empty": {func(e *operationtest.Event) { e.SetHeader("X-Operator-ISE2", "") }, operationtest.GWAlias},
	} {
		t.Run("decision sms-sender: X-Operator-ISE2 "+name, func(t *testing.T) {
			w := newFixture(t)
			e := newEvent(t)
			c.change(e)
			w.Send(t, e).AssertStatus(t, 201)
			call := w.Driver.Calls()[0].SMS
			if call.ISE2 != c.want {
				t.Errorf("sent ISE2 %q, want %q", call.ISE2, c.want)
			}
			if call.GWAlias != operationtest.GWAlias || call.GWToken != operationtest.GWToken {
				t.Errorf("gw-alias or gw-token is not sent unchanged: %q, %q", call.GWAlias, call.GWToken)
			}
		})
	}
}

// decision "sms-sender-name".
func TestSenderName(t *testing.T) {
	w := newFixture(t)
	w.Send(t, newEvent(t).SetBodyPart(senderName, "OTHER")).AssertError(t, 400, "SVC0003", senderName, "DEMO, DEMO2")
	anyone := newEvent(t).SetHeader("Authorization", operationtest.OtherToken)
	w.Send(t, anyone.SetBodyPart(senderName, "Ségolène 11")).AssertStatus(t, 201)
	w.Send(t, anyone.SetBodyPart(senderName, "Ségolène  12")).AssertError(t, 400, "SVC0002", senderName)
}

// decision "sms-notify-url".
func TestReceiptRequest(t *testing.T) {
	for name, value := range map[string]any{
		"nothing": nil, "an empty object": map[string]any{},
		"a null URL": map[string]any{"notifyURL": nil, "callbackData": nil},
		"only a URL": map[string]any{"notifyURL": "https://shop.example.com/x?a=1&b=2"},
	} {
		t.Run("decision sms-notify-url: "+name, func(t *testing.T) {
			response := newFixture(t).Send(t, newEvent(t).SetBodyPart(receipt, value)).AssertStatus(t, 201)
			want, known := map[string]string{"nothing": "", "an empty object": "{}"}[name]
			if got := response.RawJSON(receipt); known && got != want {
				t.Errorf("receiptRequest %s, want %q", got, want)
			}
		})
	}
	for _, bad := range []string{"http://shop.example.com/x", "https://127.0.0.1/x", "https://any.example.org/x"} {
		t.Run("decision sms-notify-url: refuses "+bad, func(t *testing.T) {
			newFixture(t).Send(t, newEvent(t).SetBodyPart(notifyURL, bad)).AssertError(t, 400, "SVC0002", notifyURL)
		})
	}
	t.Run("decision sms-notify-url: a profile opens it", func(t *testing.T) {
		w := newFixture(t).UpdateDemo(func(p *merchant.Profile) { p.SMSNotifyAnyHost = true })
		w.Send(t, newEvent(t).SetBodyPart(notifyURL, "https://any.example.org/x")).AssertStatus(t, 201)
		w.Send(t, newEvent(t).SetBodyPart(notifyURL, "https://10.1.2.3/")).AssertError(t, 400, "SVC0002", notifyURL)
	})
	t.Run("decision sms-notify-url: callbackData without notifyURL", func(t *testing.T) {
		newFixture(t).Send(t, newEvent(t).RemoveBodyPart(notifyURL)).AssertError(t, 400, "SVC0002", callbackData)
	})
}
