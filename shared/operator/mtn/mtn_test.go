package mtn_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/mtn"
)

const (
	apiUser   = "c72025f5-5cd1-4630-99e4-8ba4722fad56"
	reference = "0f0e6a4c-7c33-4a7e-9f3b-2f6f6a0f5d11"
	callback  = "https://gateway.example.com/callbacks/v1/payments/mtn/DemoShop_42/signed-path"
	tokenPath = "/collection/token/"
)

// suite is the bench of the driver: an account in Ivory Coast.
func suite() operatortest.Suite {
	reports := &operatortest.Reports{
		Body:   `{"externalId":"DemoShop_42","status":"STATUS","amount":"AMOUNT","currency":"CURRENCY"}`,
		Amount: "1500.0", OtherAmount: "1500.5",
		Statuses: map[string]ledger.Status{
			"CREATED": ledger.Pending, "PENDING": ledger.Pending, "SUCCESSFUL": ledger.Successful,
			"FAILED": ledger.Failed, "TIMEOUT": "", "REJECTED": "", "successful": "",
		},
	}
	return operatortest.Suite{
		Platform: "mtn-momo",
		Account: map[string]any{
			"api_user": apiUser, "api_key": "api-key-very-private",
			"subscription_key": "subscription-very-private", "target_environment": "mtnivorycoast",
		},
		Renewed: map[string]any{
			"subscription_key": "secondary-very-private", "api_key": "renewed-very-private",
		},
		Preparatory:          operatortest.Tokens(tokenPath),
		TokenMargin:          10 * time.Minute,
		SuccessResponse:      operatortest.Always(respond(202, "")),
		RefusalResponse:      operatortest.Always(respond(500, code("PAYER_NOT_FOUND"))),
		NotAppliedResponse:   operatortest.Always(respond(500, code("INVALID_CURRENCY"))),
		TokenRefusedResponse: respond(401, inFront401),
		DuplicateResponse:    respond(409, code("RESOURCE_ALREADY_EXIST")),
		NotFoundResponse:     respond(404, code("RESOURCE_NOT_FOUND")),
		Lookup:               reports,
		Callback:             reports,
	}
}

func TestConformance(t *testing.T) { operatortest.Run(t, suite()) }

func respond(status int, body string) operatortest.Responder {
	return operatortest.Respond(status, body)
}

func newDriver(t *testing.T, stub *operatortest.StubOperator) *mtn.Driver {
	t.Helper()
	return operatortest.New[*mtn.Driver](t, suite(), stub.URL)
}

// exchanging responds to exchanges of tokens.
func exchanging(token operatortest.Responder) func(*http.Request) operatortest.Responder {
	return func(r *http.Request) operatortest.Responder {
		if r.URL.Path == tokenPath {
			return token
		}
		return nil
	}
}

func samplePay() operator.PayCall {
	call := operatortest.SamplePay("mtn-momo", "", "tpe")
	call.UpstreamKey, call.Amount, call.NotifyURL = reference, "500.00", callback
	return call
}

func sampleLookup() operator.StatusCall {
	return operator.StatusCall{Call: samplePay().Call, Channel: "tpe", Lang: "fr", Amount: "500.00", Currency: "XOF"}
}

func TestAccountFields(t *testing.T) {
	suite().CheckFields(t, map[string]map[string]bool{
		"base_url":         {"https://proxy.momoapi.mtn.com": true, "": false},
		"api_user":         {apiUser: true, "user:name": false},
		"api_key":          {"": false},
		"subscription_key": {"a\n": false},
		"target_environment": {
			"sandbox": true, "mtnivorycoast": true, "mtncameroon": true, "": false,
			"mtncongo": false, // the Republic of the Congo
		},
	})
}

// A call that no account can make is not sent.
func TestUnsentPayments(t *testing.T) {
	type edits = map[string]func(*operator.PayCall)
	suite().CheckUnsent(t, samplePay(), map[operatortest.Proof]edits{
		operatortest.OurFault: {
			"another country":      func(c *operator.PayCall) { c.Country, c.MSISDN = "CM", "670000000" },
			"platform without one": func(c *operator.PayCall) { c.Platform = "orange-cm" },
		},
		operatortest.InvalidPart("user_msisdn"): {
			"no number":           func(c *operator.PayCall) { c.MSISDN = "" },
			"number of elsewhere": func(c *operator.PayCall) { c.MSISDN = "+237670000000" },
		},
		operatortest.InvalidPart("amount"): {
			"decimals": func(c *operator.PayCall) { c.Amount = "500.5" },
		},
	})
}

// In the sandbox every country is sent in EUR, and a lookup reports the merchant's currency.
func TestSandbox(t *testing.T) {
	successful := operatortest.ReadFile(t, "successful.json")
	euros := strings.ReplaceAll(successful, `"XOF"`, `"EUR"`)
	account := suite().With(map[string]any{"target_environment": "sandbox", "currency": "EUR"})
	stub := account.Stub(t, respond(202, ""), respond(200, euros), respond(200, successful))
	driver := operatortest.New[*mtn.Driver](t, account, stub.URL)
	call := samplePay()
	call.Country, call.MSISDN, call.Currency = "CM", "670000000", "XAF"
	if result := driver.Pay(t.Context(), call); result.Outcome != operator.Succeeded {
		t.Fatalf("outcome %d, %v", result.Outcome, result.Fault)
	}
	request := stub.Requests()[0]
	if !strings.Contains(request.Body, `"currency":"EUR"`) || !strings.Contains(request.Body, `"237670000000"`) ||
		request.Header.Get("X-Target-Environment") != "sandbox" {
		t.Errorf("request %v", request)
	}
	if found := driver.LookUpPayment(t.Context(), sampleLookup()); found.Currency != "XOF" {
		t.Errorf("currency %q, want the merchant's", found.Currency)
	}
	lookup := sampleLookup()
	lookup.Currency = "XAF"
	if found := driver.LookUpPayment(t.Context(), lookup); found.Currency != "XOF" {
		t.Errorf("another currency became %q", found.Currency)
	}
	if report := driver.ReadPaymentCallback([]byte(euros)); report.Currency != "" || report.Status == "" {
		t.Errorf("callback %+v", report)
	}
}
