package carrierapi

import (
	"net/http"
	"strings"
	"testing"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// seeds are responses of all kinds, besides the committed corpus in testdata/fuzz.
var seeds = []string{
	``, `{}`, `null`, `[]`, `{"amountTransaction":null}`, `{"amountTransaction":[]}`,
	`{"amountTransaction":{"serverReferenceCode":"s","transactionOperationStatus":"Charged"}}`,
	`{"pay_token":"p","payment_url":"https://op.example/p","notif_token":"n"}`,
	`{"status":"pending","order-id":"DemoShop_42","amount":1e3}`,
	`{"payload":{"status":"pending","order-id":"DemoShop_42"}}`,
	`{"outboundSMSMessageRequest":{"resourceURL":"https://op/requests/1/deliveryInfos"}}`,
	`{"requestError":{"serviceException":{"messageId":"SVC0270","text":"t","variables":[]}}}`,
	`{"requestError":{"policyException":{"messageId":"POL1000"}}}`,
}

// FuzzResponse reads any response as each operation does. It must not panic, and no outcome may be more certain than
// the response.
func FuzzResponse(f *testing.F) {
	for _, seed := range seeds {
		for _, status := range []int{200, 201, 302, 400, 401, 403, 404, 409, 429, 500, 503} {
			f.Add(status, seed)
		}
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		x := upstream.Exchange{Status: status, Header: http.Header{}, Body: []byte(body), MayHaveSent: true}
		readers := map[string]successParser{
			"charge": parseChargeSuccess, "sms": parseSMSSuccess,
			"web": parseWebSuccess,
			"tpe": func(r *strictjson.Reader) (operator.PayResponse, bool) {
				return parseTerminalSuccess(r, "DemoShop_42")
			},
		}
		for name, parseSuccess := range readers {
			result := classifyExchange(x, parseSuccess).Result
			checkCertainty(t, name, status, body, result)
			again := outcomeAfterRetry(result)
			if again.Outcome == operator.NotApplied {
				t.Errorf("%s: NotApplied after an unknown first attempt", name)
			}
		}
		checkStatus(t, newLookup("DemoShop_42").ReadResponse(x))
	})
}

func checkCertainty(t *testing.T, name string, status int, body string, result operator.Result) {
	t.Helper()
	if (result.Outcome == operator.Succeeded) != (result.Fault == nil) {
		t.Errorf("%s: outcome %d with fault %v", name, result.Outcome, result.Fault)
	}
	switch result.Outcome {
	case operator.Succeeded:
		if status < 200 || status > 299 {
			t.Errorf("%s: Succeeded by status %d", name, status)
		}
	case operator.Refused:
		if status < 400 || status > 499 || !strings.Contains(body, "requestError") {
			t.Errorf("%s: Refused by status %d", name, status)
		}
	case operator.NotApplied:
		if (status < 400 || status > 499) && status != 503 || status == 409 {
			t.Errorf("%s: NotApplied by status %d", name, status)
		}
	case operator.Unknown:
	}
	if len([]rune(result.OperatorReference)) > upstream.MaxFieldLength {
		t.Errorf("%s: a reference of %d bytes", name, len(result.OperatorReference))
	}
}

func checkStatus(t *testing.T, response operator.StatusResponse) {
	t.Helper()
	if (response.Status != "") != (response.Cause == nil) {
		t.Errorf("status %q with the cause %v", response.Status, response.Cause)
	}
	if response.Status != "" && response.OrderNotFound {
		t.Errorf("the status is %q, and the order was not found", response.Status)
	}
}
