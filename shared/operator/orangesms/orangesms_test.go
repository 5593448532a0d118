package orangesms_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/orangesms"
)

const (
	callbackSecret = "callback-secret-0123456789abcdefghijk"
	token          = `{"token_type":"Bearer","access_token":"secret-token-1","expires_in":"3600"}`
	requestID      = "0f4c1a52-6e3b-4f0e-9d0c-2b6f5d1f7a10"
)

// suite is the bench of the driver. The sender name of the sample messages is approved.
func suite(t testing.TB) operatortest.Suite {
	return operatortest.Suite{
		Platform: "orange-sms",
		Account: map[string]any{
			"client_id": "id", "client_secret": "secret-cs", "callback_secret": callbackSecret,
			"sender":         map[string]string{"CI": "tel:+2250000", "SN": "tel:+2210000"},
			"approved_names": "MyShop,Demo Shop,Demo",
		},
		Renewed:              map[string]any{"client_secret": "secret-renewed-cs"},
		Preparatory:          operatortest.Tokens("/oauth/v3/token"),
		TokenMargin:          5 * time.Minute,
		SuccessResponse:      operatortest.Always(sent(t)),
		RefusalResponse:      operatortest.Always(respond(400, exception(service, "SVC0004"))),
		NotAppliedResponse:   operatortest.Always(respond(403, exception(policy, "POL0001"))),
		TokenRefusedResponse: respond(401, gatewayError(42)),
		Secrets: []string{
			"secret-", "0700000000", "Bonjour", operatortest.SampleToken, operatortest.SampleAlias,
		},
	}
}

func TestConformance(t *testing.T) { operatortest.Run(t, suite(t)) }

func respond(status int, body string) operatortest.Responder {
	return operatortest.Respond(status, body)
}

func sent(t testing.TB) operatortest.Responder {
	return respond(201, operatortest.ReadFile(t, "sms-response.json"))
}

func newDriver(t *testing.T, bench operatortest.Suite, stub *operatortest.StubOperator) *orangesms.Driver {
	t.Helper()
	return operatortest.New[*orangesms.Driver](t, bench, stub.URL)
}

func smsCall() operator.SMSCall {
	call := operatortest.SampleSMS("orange-sms", "")
	call.ISE2, call.SenderName = "+2250700000000", "MyShop"
	return call
}

// The exchange and the message, byte for byte, as Orange's documents show them, with their values.
func TestDocumentedExamples(t *testing.T) {
	stub := operatortest.NewStubOperator(t, respond(200, token), sent(t))
	call := smsCall()
	call.Message = "Bonjour"
	result := newDriver(t, suite(t), stub).SendSMS(t.Context(), call)
	suite(t).CheckProof(t, result, operatortest.Succeeded)
	if result.OperatorReference != requestID {
		t.Errorf("result %+v", result)
	}
	operatortest.CheckRequests(t, stub, []string{"Authorization", "Content-Type"}, "token.http", "sms.http")
}

// The body has the merchant's parts in Orange's form. A part that Orange cannot take is refused before any request.
func TestMerchantParts(t *testing.T) {
	const recipient, sender, name = "X-Operator-ISE2", "outboundSMSMessageRequest.senderAddress",
		"outboundSMSMessageRequest.senderName"
	const number = "a number of Ivory Coast (+225 and 10 digits)"
	cases := []struct {
		name  string
		edit  func(*operator.SMSCall)
		want  string // a part of the body
		part  string // refused
		value string
	}{
		{"national number", func(c *operator.SMSCall) { c.ISE2 = "0700000000" },
			`"address":"tel:+2250700000000"`, "", ""},
		{"double zero", func(c *operator.SMSCall) { c.ISE2 = "002250700000000" },
			`"address":"tel:+2250700000000"`, "", ""},
		{"literal text", func(c *operator.SMSCall) { c.Message = `10% "off" & <more>` },
			`{"message":"10% \"off\" & <more>"}`, "", ""},
		{"escaped text", func(*operator.SMSCall) {}, `{"message":"Bonjour à tous"}`, "", ""},
		{"approved name with a space", func(c *operator.SMSCall) { c.SenderName = "Demo Shop" },
			`"senderName":"Demo Shop"`, "", ""},
		{"another country", func(c *operator.SMSCall) {
			c.Country, c.ISE2, c.Sender = "SN", "770000000", "tel:+2210000"
		}, `"address":"tel:+221770000000","senderAddress":"tel:+2210000"`, "", ""},
		{"an alias", func(c *operator.SMSCall) { c.ISE2 = operatortest.SampleAlias }, "",
			recipient, number},
		{"no recipient", func(c *operator.SMSCall) { c.ISE2 = "" }, "", recipient, number},
		{"a number of another country", func(c *operator.SMSCall) { c.ISE2 = "+221770000000" }, "",
			recipient, number},
		{"another sender", func(c *operator.SMSCall) { c.Sender = "tel:+2251234" }, "",
			sender, "tel:+2250000"},
		{"a name that is not approved", func(c *operator.SMSCall) { c.SenderName = "Bank" }, "",
			name, "MyShop, Demo Shop, Demo"},
		{"a name that is not approved, of a merchant with names", func(c *operator.SMSCall) {
			c.SenderName, c.SenderNames = "Bank", []string{"Bank", "MyShop"}
		}, "", name, "MyShop"},
		{"no name of the merchant is approved", func(c *operator.SMSCall) {
			c.SenderName, c.SenderNames = "Bank", []string{"Bank"}
		}, "", name, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := suite(t).Stub(t, sent(t))
			call := smsCall()
			c.edit(&call)
			result := newDriver(t, suite(t), stub).SendSMS(t.Context(), call)
			if c.part == "" {
				suite(t).CheckProof(t, result, operatortest.Succeeded)
				if body := stub.Requests()[0].Body; !strings.Contains(body, c.want) {
					t.Errorf("body %s", body)
				}
				return
			}
			if result.Outcome != operator.NotApplied || result.Fault.Part != c.part || result.Fault.Value != c.value {
				t.Errorf("outcome %d, %+v", result.Outcome, result.Fault)
			}
			suite(t).CheckPrivate(t, result.Fault)
			if len(stub.Requests()) != 0 {
				t.Errorf("%d requests", len(stub.Requests()))
			}
		})
	}
}

// Without approved names a message has no sender name.
func TestNoApprovedNames(t *testing.T) {
	bench := suite(t).With(map[string]any{"approved_names": nil})
	stub := bench.Stub(t, sent(t))
	newDriver(t, bench, stub).SendSMS(t.Context(), smsCall())
	const want = `"senderAddress":"tel:+2250000","outboundSMSTextMessage"`
	if body := stub.Requests()[0].Body; !strings.Contains(body, want) {
		t.Errorf("body %s", body)
	}
}

// A message of a country without a sender, and a repeat, are not sent.
func TestNothingIsSent(t *testing.T) {
	stub := operatortest.NewStubOperator(t)
	driver := newDriver(t, suite(t), stub)
	withoutSender, repeat := smsCall(), smsCall()
	withoutSender.Country, withoutSender.ISE2, repeat.MayRepeat = "CM", "690000002", true
	suite(t).CheckProof(t, driver.SendSMS(t.Context(), withoutSender), operatortest.OurFault)
	suite(t).CheckProof(t, driver.SendSMS(t.Context(), repeat), operatortest.Unknown)
	if sent := stub.Requests(); len(sent) != 0 {
		t.Errorf("%d requests were sent", len(sent))
	}
}

func TestFieldChecks(t *testing.T) {
	suite(t).CheckFields(t, map[string]map[string]bool{
		"sender.*": {
			"tel:+2250000": true, "tel:+22500000000": true, "2250000": false, "tel:2250000": false, "": false,
		},
		"approved_names": {
			"MyShop": true, "A,B C": true, "A,": false, "": false, "Twelve chars": false, "A, B": false,
		},
	})
}

func TestReceipts(t *testing.T) {
	receipt := func(infos string) string {
		return `{"deliveryInfoNotification":{"callbackData":"` + requestID + `","deliveryInfo":` + infos + `}}`
	}
	terminal := `{"address":"tel:+2250700000000","deliveryStatus":"DeliveredToTerminal"}`
	network := strings.Replace(terminal, "Terminal", "Network", 1)
	read := newDriver(t, suite(t), operatortest.NewStubOperator(t)).ReadReceipt
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
