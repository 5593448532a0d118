package orangesms_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/orangesms"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/secret"
)

const (
	platform       = "orange-sms"
	callbackSecret = "secret-0123456789abcdefghijklmnop_"
	token          = `{"token_type":"Bearer","access_token":"secret-token-1","expires_in":"3600"}`
	requestID      = "0f4c1a52-6e3b-4f0e-9d0c-2b6f5d1f7a10"
)

func fields() map[string]any {
	return map[string]any{
		"client_id": "id", "client_secret": "secret-cs", "callback_secret": callbackSecret,
		"sender":         map[string]string{"CI": "tel:+2250000", "SN": "tel:+2210000"},
		"approved_names": "MyShop,Demo Shop",
	}
}

func newDriver(t *testing.T, baseURL string, account map[string]any) *orangesms.Driver {
	t.Helper()
	account["base_url"] = baseURL
	return driverOver(operatortest.Secret(platform, "main", account))
}

func driverOver(secrets secret.Reader) *orangesms.Driver {
	accounts := credentials.NewReader(secrets, time.Now, operator.CheckBaseURL)
	return orangesms.New(accounts, upstream.NewClient(nil), upstream.NewTokens(time.Now, nil))
}

func smsCall() operator.SMSCall {
	return operator.SMSCall{
		Call: operator.Call{
			Platform: platform, AccountID: "main", Operator: "orange", Country: "CI", MCO: "OCI",
			UpstreamKey: "DemoShop.s-1", GWToken: operatortest.SampleToken, GWAlias: operatortest.SampleAlias,
		},
		ISE2: "+2250700000000", Sender: "tel:+2250000", SenderName: "MyShop", Message: "Bonjour%20%C3%A0%20tous",
		NotifyURL: "https://gateway.example.com/callbacks/v1/receipts/orange/1/token",
	}
}

func checkResult(t *testing.T, got operator.Result, outcome operator.Outcome, kind fault.Kind) {
	t.Helper()
	if got.DuplicateKey {
		t.Errorf("a duplicate: %v", got.Fault)
	}
	operatortest.CheckResult(t, got, outcome, kind, private())
}

// private are the texts that no fault contains: secrets, numbers and the text of the message.
func private() []string {
	return []string{"secret-", "0700000000", "Bonjour", operatortest.SampleToken, operatortest.SampleAlias}
}

// The exchange and the message, byte for byte, as Orange's documents show them, with their values.
func TestDocumentedExamples(t *testing.T) {
	stub := operatortest.NewStubOperator(t,
		operatortest.Respond(200, token), operatortest.Respond(201, operatortest.ReadFile(t, "sms-response.json")))
	call := smsCall()
	call.Message = "Bonjour"
	result := newDriver(t, stub.URL, fields()).SendSMS(t.Context(), call)
	checkResult(t, result, operator.Succeeded, 0)
	if result.OperatorReference != requestID || result.HTTPStatus != 201 {
		t.Errorf("result %+v", result)
	}
	for i, name := range []string{"token.http", "sms.http"} {
		r := stub.Requests()[i]
		got := r.Method + " " + r.Path + "\nAuthorization: " + r.Header.Get("Authorization") +
			"\nContent-Type: " + r.Header.Get("Content-Type") + "\n\n" + r.Body
		if want := operatortest.ReadFile(t, "document/"+name); want != got {
			t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(want, got))
		}
	}
}

// The body has the merchant's parts in Orange's form. A part that Orange cannot take is refused before any request.
func TestMerchantParts(t *testing.T) {
	const recipient, sender, name = "X-Operator-ISE2", "outboundSMSMessageRequest.senderAddress",
		"outboundSMSMessageRequest.senderName"
	const number = "a number of Ivory Coast (+225 and 10 digits)"
	cases := []struct {
		name  string
		edit  func(*operator.SMSCall, map[string]any)
		want  string // a part of the body
		part  string // refused
		value string
	}{
		{"national number", func(c *operator.SMSCall, _ map[string]any) { c.ISE2 = "0700000000" },
			`"address":"tel:+2250700000000"`, "", ""},
		{"double zero", func(c *operator.SMSCall, _ map[string]any) { c.ISE2 = "002250700000000" },
			`"address":"tel:+2250700000000"`, "", ""},
		{"literal text", func(c *operator.SMSCall, _ map[string]any) { c.Message = `10% "off" & <more>` },
			`{"message":"10% \"off\" & <more>"}`, "", ""},
		{"escaped text", func(*operator.SMSCall, map[string]any) {}, `{"message":"Bonjour à tous"}`, "", ""},
		{"approved name with a space", func(c *operator.SMSCall, _ map[string]any) { c.SenderName = "Demo Shop" },
			`"senderName":"Demo Shop"`, "", ""},
		{"no approved names", func(_ *operator.SMSCall, account map[string]any) { delete(account, "approved_names") },
			`"senderAddress":"tel:+2250000","outboundSMSTextMessage"`, "", ""},
		{"another country", func(c *operator.SMSCall, _ map[string]any) {
			c.Country, c.ISE2, c.Sender = "SN", "770000000", "tel:+2210000"
		}, `"address":"tel:+221770000000","senderAddress":"tel:+2210000"`, "", ""},
		{"an alias", func(c *operator.SMSCall, _ map[string]any) { c.ISE2 = operatortest.SampleAlias }, "",
			recipient, number},
		{"no recipient", func(c *operator.SMSCall, _ map[string]any) { c.ISE2 = "" }, "", recipient, number},
		{"a number of another country", func(c *operator.SMSCall, _ map[string]any) { c.ISE2 = "+221770000000" }, "",
			recipient, number},
		{"another sender", func(c *operator.SMSCall, _ map[string]any) { c.Sender = "tel:+2251234" }, "",
			sender, "tel:+2250000"},
		{"a name that is not approved", func(c *operator.SMSCall, _ map[string]any) { c.SenderName = "Bank" }, "",
			name, "MyShop, Demo Shop"},
		{"a name that is not approved, of a merchant with names", func(c *operator.SMSCall, _ map[string]any) {
			c.SenderName, c.SenderNames = "Bank", []string{"Bank", "MyShop"}
		}, "", name, "MyShop"},
		{"no name of the merchant is approved", func(c *operator.SMSCall, _ map[string]any) {
			c.SenderName, c.SenderNames = "Bank", []string{"Bank"}
		}, "", name, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t,
				operatortest.Respond(200, token),
				operatortest.Respond(201, operatortest.ReadFile(t, "sms-response.json")))
			call, account := smsCall(), fields()
			c.edit(&call, account)
			result := newDriver(t, stub.URL, account).SendSMS(t.Context(), call)
			if c.part == "" {
				checkResult(t, result, operator.Succeeded, 0)
				if body := stub.Requests()[1].Body; !strings.Contains(body, c.want) {
					t.Errorf("body %s", body)
				}
				return
			}
			if result.Outcome != operator.NotApplied || result.Fault.Part != c.part || result.Fault.Value != c.value {
				t.Errorf("outcome %d, %+v", result.Outcome, result.Fault)
			}
			operatortest.CheckPrivate(t, result.Fault, private())
			if len(stub.Requests()) != 0 {
				t.Errorf("%d requests", len(stub.Requests()))
			}
		})
	}
}

// Unusable fields and other operations: nothing is sent.
func TestNothingIsSent(t *testing.T) {
	stub := operatortest.NewStubOperator(t)
	for _, path := range []string{"client_id", "client_secret", "callback_secret"} {
		account := fields()
		account[path] = "a: secret-b\n"
		driver := newDriver(t, stub.URL, account)
		_, err := driver.FindAccount(t.Context(), platform, "")
		if f := fault.FromError(err); f == nil || f.Kind != fault.IntegrationRejected ||
			!strings.Contains(f.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
		checkResult(t, driver.SendSMS(t.Context(), smsCall()), operator.NotApplied, fault.IntegrationRejected)
	}
	driver := newDriver(t, stub.URL, fields())
	if id, err := driver.FindAccount(t.Context(), platform, ""); id != "main" || err != nil {
		t.Errorf("current account %q, %v", id, err)
	}
	withoutSender, repeat := smsCall(), smsCall()
	withoutSender.Country, withoutSender.ISE2 = "CM", "690000002"
	checkResult(t, driver.SendSMS(t.Context(), withoutSender), operator.NotApplied, fault.IntegrationRejected)
	repeat.MayRepeat = true
	checkResult(t, driver.SendSMS(t.Context(), repeat), operator.Unknown, fault.OutcomeUnknown)
	if sent := stub.Requests(); len(sent) != 0 {
		t.Errorf("%d requests were sent", len(sent))
	}
}

func TestFieldChecks(t *testing.T) {
	values := map[string]map[string]bool{
		"sender.*": {
			"tel:+2250000": true, "tel:+22500000000": true, "2250000": false, "tel:2250000": false, "": false,
		},
		"approved_names": {
			"MyShop": true, "A,B C": true, "A,": false, "": false, "Twelve chars": false, "A, B": false,
		},
		"callback_secret": {callbackSecret: true, callbackSecret[:31]: false, callbackSecret + "/": false, "": false},
	}
	for _, field := range newDriver(t, "https://api.orange.com", fields()).AccountFields() {
		for value, usable := range values[field.Path] {
			if err := field.Check(value); (err == nil) != usable {
				t.Errorf("%s %q: %v", field.Path, value, err)
			}
		}
	}
}

type unreadable struct{ secret.Static }

func (unreadable) Get(context.Context) ([]byte, error)     { return nil, errors.New("no secret") }
func (unreadable) Refresh(context.Context) ([]byte, error) { return nil, errors.New("no secret") }

// The secret in the path authenticates a receipt. An unreadable secret is an error, so that Orange may try again.
func TestStaticVerification(t *testing.T) {
	driver := newDriver(t, "http://127.0.0.1:1", fields())
	short := fields()
	short["callback_secret"] = "short"
	cases := []struct {
		name    string
		driver  *orangesms.Driver
		account string
		path    string
		valid   bool
		isError bool
	}{
		{"genuine", driver, "main", callbackSecret, true, false},
		{"wrong secret", driver, "main", strings.ToUpper(callbackSecret), false, false},
		{"no secret", driver, "main", "", false, false},
		{"unknown account", driver, "gone", callbackSecret, false, false},
		{"an unusable secret", newDriver(t, "http://127.0.0.1:1", short), "main", "short", false, false},
		{"unreadable credentials", driverOver(unreadable{}), "main", callbackSecret, false, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			valid, err := c.driver.VerifyStaticCallback(t.Context(), operator.StaticCallback{
				Platform: platform, AccountID: c.account, PathSecret: c.path, Body: []byte("{}"),
				Header: func(string) string { return "" },
			})
			if valid != c.valid || (err != nil) != c.isError {
				t.Errorf("valid %v, %v", valid, err)
			}
		})
	}
}

func TestReceipts(t *testing.T) {
	receipt := func(infos string) string {
		return `{"deliveryInfoNotification":{"callbackData":"` + requestID + `","deliveryInfo":` + infos + `}}`
	}
	terminal := `{"address":"tel:+2250700000000","deliveryStatus":"DeliveredToTerminal"}`
	network := strings.Replace(terminal, "Terminal", "Network", 1)
	read := newDriver(t, "http://127.0.0.1:1", fields()).ReadReceipt
	cases := map[string]struct {
		body string
		want []ledger.Status // nil for a receipt that cannot be read
	}{
		"delivered": {operatortest.ReadFile(t, "receipt.json"), []ledger.Status{ledger.DeliveredToTerminal}},
		"list": {receipt("[" + network + "," + terminal + "]"), []ledger.Status{
			ledger.DeliveredToNetwork, ledger.DeliveredToTerminal,
		}},
		"uncertain": {receipt(`{"deliveryStatus":"DeliveryUncertain"}`), []ledger.Status{ledger.DeliveryUncertain}},
		"impossible": {
			receipt(`{"deliveryStatus":"DeliveryImpossible"}`), []ledger.Status{ledger.DeliveryImpossible},
		},
		"waiting":      {receipt(`{"deliveryStatus":"MessageWaiting"}`), []ledger.Status{ledger.MessageWaiting}},
		"unknown word": {receipt("[" + network + `,{"deliveryStatus":"Lost"}]`), nil},
		"no status":    {receipt(`{}`), nil},
		"no infos":     {receipt(`[]`), nil},
		"a text":       {receipt(`"x"`), nil},
		"no id":        {strings.Replace(receipt(terminal), requestID, "", 1), nil},
		"HTML":         {"<html></html>", nil},
		"empty":        {"", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			id, statuses, ok := read([]byte(c.body))
			if ok != (c.want != nil) || ok != (id == requestID) {
				t.Errorf("id %q, ok %v", id, ok)
			}
			if diff := cmp.Diff(c.want, statuses); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
		})
	}
}
