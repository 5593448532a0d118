package orangecm_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/orangecm"
)

const (
	payToken = "MP2201010123456789ABCDEF0123"
	token    = `{"access_token":"secret-token-1","scope":"default","token_type":"Bearer","expires_in":2496}`
	prepared = `{"message":"Payment request successfully initiated","data":{"payToken":"` + payToken + `"}}`
)

// suite is the bench of the driver. Its sample payments are prepared.
func suite(t testing.TB) operatortest.Suite {
	exchange := operatortest.Tokens("/token")
	pending := respond(200, operatortest.ReadFile(t, "pay-response.json"))
	reports := &operatortest.Reports{
		Body: `{"data":{"payToken":"` + payToken + `","status":"STATUS","amount":AMOUNT,"txnmode":"DemoShop_42",` +
			`"inittxnstatus":"200","confirmtxnstatus":"200"}}`,
		Amount: "1500", OtherAmount: "15", HasNoCurrency: true,
		Statuses: map[string]ledger.Status{
			"PENDING": ledger.Pending, "INITIATED": ledger.Pending, "FAILED": ledger.Failed, "EXPIRED": ledger.Expired,
			"CANCELLED": ledger.Cancelled, word: ledger.Successful, "DONE": "",
		},
	}
	return operatortest.Suite{
		Platform: "orange-cm", DriverData: payToken,
		Account: map[string]any{
			"consumer_key": "ck", "consumer_secret": "secret-cs", "api_user": "apiuser", "api_password": "secret-api",
			"channel_msisdn": "691000001", "pin": "8642",
		},
		Renewed: map[string]any{"consumer_secret": "secret-renewed-cs", "api_password": "secret-renewed-api"},
		Preparatory: func(r *http.Request) operatortest.Responder {
			if strings.HasSuffix(r.URL.Path, "/mp/init") {
				return respond(200, prepared)
			}
			return exchange(r)
		},
		TokenMargin: 5 * time.Minute,
		SuccessResponse: func(op operatortest.Operation) operatortest.Responder {
			if op.Name == "tpe" { // at once: a lookup follows
				return respond(200, operatortest.ReadFile(t, "status-success.json"))
			}
			return pending
		},
		RefusalResponse:      operatortest.Always(respond(200, operatortest.ReadFile(t, "pay-refused.json"))),
		NotAppliedResponse:   operatortest.Always(respond(429, `{"fault":{"code":900802}}`)),
		TokenRefusedResponse: respond(401, expiredJSON),
		DuplicateResponse:    respond(422, `{}`),
		NotFoundResponse:     respond(400, `{"message":"m","data":{"inittxnstatus":"0069"}}`),
		Lookup:               reports,
		Callback:             reports,
		Secrets:              []string{"secret-", "8642", "690000002", "NGUEMA"},
	}
}

func TestConformance(t *testing.T) { operatortest.Run(t, suite(t)) }

func respond(status int, body string) operatortest.Responder {
	return operatortest.Respond(status, body)
}

func newDriver(t *testing.T, stub *operatortest.StubOperator) *orangecm.Driver {
	t.Helper()
	return operatortest.New[*orangecm.Driver](t, suite(t), stub.URL)
}

func payCall() operator.PayCall {
	call := operatortest.SamplePay("orange-cm", "", "ussd")
	call.OrderID, call.UpstreamKey, call.DriverData = "ORD1", "ORD1", payToken
	call.Amount, call.MSISDN = "100.00", "+237690000002"
	call.NotifyURL = "https://gateway.example.com/callbacks/v1/payments/orange/ORD1/token"
	return call
}

func statusCall() operator.StatusCall {
	return operator.StatusCall{Call: payCall().Call, Channel: "ussd", Amount: "100.00", Currency: "XAF"}
}

// The requests of a payment and its lookup, byte for byte, as the examples of Orange's document have them. It masks the
// numbers and the PIN, and leaves out the texts.
func TestDocumentedExamples(t *testing.T) {
	stub := operatortest.NewStubOperator(t, respond(200, token), respond(200, prepared),
		respond(200, operatortest.ReadFile(t, "pay-response.json")),
		respond(200, operatortest.ReadFile(t, "status-success.json")))
	driver := newDriver(t, stub)
	if driverData, result := driver.Prepare(t.Context(), payCall()); driverData != payToken {
		t.Fatalf("data of the driver %q: %v", driverData, result.Fault)
	}
	response := driver.Pay(t.Context(), payCall())
	suite(t).CheckProof(t, response.Result, operatortest.Succeeded)
	if response.DriverData != payToken || response.OperatorReference != "MP260101.1000.B00001" {
		t.Errorf("response %+v", response)
	}
	want := operatortest.WithStatus(operator.StatusReport{
		Status: ledger.Successful, Amount: "100", MSISDN: "690000002", OperatorReference: "MP260101.1000.B00001",
	})
	if diff := cmp.Diff(want, driver.LookUpPayment(t.Context(), statusCall())); diff != "" {
		t.Errorf("lookup (-want +got):\n%s", diff)
	}
	headers := []string{"Authorization", "X-Auth-Token", "Content-Type", "Content-Length"}
	operatortest.CheckRequests(t, stub, headers, "token.http", "init.http", "pay.http", "paymentstatus.http")
}

// Every form of the payer's number and of the amount that the platform takes, and the parts that it does not.
func TestMerchantParts(t *testing.T) {
	type edits = map[string]func(*operator.PayCall)
	for name, edit := range (edits{
		"national":      func(c *operator.PayCall) { c.MSISDN = "690000002" },
		"trunk zero":    func(c *operator.PayCall) { c.MSISDN = "0690000002" },
		"double zero":   func(c *operator.PayCall) { c.MSISDN = "00237690000002" },
		"no plus":       func(c *operator.PayCall) { c.MSISDN = "237690000002" },
		"leading zeros": func(c *operator.PayCall) { c.Amount = "0100" },
	}) {
		t.Run(name, func(t *testing.T) {
			stub := suite(t).Stub(t, respond(200, operatortest.ReadFile(t, "pay-response.json")))
			call := payCall()
			edit(&call)
			suite(t).CheckProof(t, newDriver(t, stub).Pay(t.Context(), call).Result, operatortest.Succeeded)
			body := stub.Requests()[0].Body
			if !strings.Contains(body, `"690000002"`) || !strings.Contains(body, `"amount":"100"`) {
				t.Errorf("body %s", body)
			}
		})
	}
	notAllowed := operatortest.Proof{Outcome: operator.NotApplied, Kind: fault.ValueNotAllowed, Part: "currency"}
	suite(t).CheckUnsent(t, payCall(), map[operatortest.Proof]edits{
		operatortest.InvalidPart("user_msisdn"): {
			"no number":       func(c *operator.PayCall) { c.MSISDN = "" },
			"another country": func(c *operator.PayCall) { c.MSISDN = "+2250707070707" },
			"too short":       func(c *operator.PayCall) { c.MSISDN = "69000000" },
		},
		operatortest.InvalidPart("amount"): {
			"decimals": func(c *operator.PayCall) { c.Amount = "100.50" },
			"zero":     func(c *operator.PayCall) { c.Amount = "0" },
		},
		notAllowed: {"another currency": func(c *operator.PayCall) { c.Currency = "USD" }},
	})
}

// Without a payToken neither a payment nor a lookup is sent.
func TestUnprepared(t *testing.T) {
	stub := operatortest.NewStubOperator(t)
	call, lookup := payCall(), statusCall()
	call.DriverData, lookup.DriverData = "", ""
	suite(t).CheckProof(t, newDriver(t, stub).Pay(t.Context(), call).Result, operatortest.Unavailable)
	found := suite(t).LookUp(t, stub, lookup)
	if sent := len(stub.Requests()); found.Cause == nil || found.Responded() || sent != 0 {
		t.Errorf("a lookup without a payToken: %+v; %d requests", found, sent)
	}
}
