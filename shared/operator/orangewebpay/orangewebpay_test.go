package orangewebpay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/orangewebpay"
)

const notifToken = "dd497bda3b250e536186fc0663f32f40"

// suite is the bench of the driver: an account in Ivory Coast.
func suite(t testing.TB) operatortest.Suite {
	report := func(body string) *operatortest.Reports {
		return &operatortest.Reports{
			Body: body, HasNoCurrency: true, // and no amount: the request of the lookup has it
			Statuses: map[string]ledger.Status{
				"INITIATED": ledger.Pending, "PENDING": ledger.Pending, "SUCCESS": ledger.Successful,
				"FAILED": ledger.Failed, "EXPIRED": ledger.Expired, "FAILURE": "", "PAID": "", "success": "",
			},
		}
	}
	return operatortest.Suite{
		Platform: "orange-webpay", DriverData: "v1f5720d",
		Account: map[string]any{
			"segment": "ci", "merchant_key": "merchant-key-very-private", "client_id": "client-1",
			"client_secret": "client-secret-very-private",
		},
		Renewed:              map[string]any{"client_secret": "renewed-very-private"},
		Preparatory:          operatortest.Tokens("/oauth/v3/token"),
		TokenMargin:          5 * time.Minute,
		SuccessResponse:      operatortest.Always(respond(201, operatortest.ReadFile(t, "pay-response.json"))),
		NotAppliedResponse:   operatortest.Always(orangeError(400, "23")),
		TokenRefusedResponse: orangeError(401, "42"),
		DuplicateResponse:    orangeError(400, "1204"),
		NotFoundResponse:     orangeError(400, "22"),
		LookupStatus:         201,
		Lookup:               report(`{"status":"STATUS","order_id":"DemoShop_42","txnid":"MP1"}`),
		Callback:             report(`{"status":"STATUS","notif_token":"` + notifToken + `","txnid":"MP1"}`),
		Secrets:              []string{"v1f5720d"},
	}
}

func TestConformance(t *testing.T) { operatortest.Run(t, suite(t)) }

func respond(status int, body string) operatortest.Responder {
	return operatortest.Respond(status, body)
}

func newDriver(t *testing.T, bench operatortest.Suite, stub *operatortest.StubOperator) *orangewebpay.Driver {
	t.Helper()
	return operatortest.New[*orangewebpay.Driver](t, bench, stub.URL)
}

func payCall() operator.PayCall {
	call := operatortest.SamplePay("orange-webpay", "", "web")
	call.Amount = "1200.00"
	call.ReturnURL, call.CancelURL = "https://shop.example/back?a=1&b=2", "https://shop.example/cancel"
	call.NotifyURL = "https://gw.example/callbacks/v1/payments/orange/DemoShop_42/token"
	return call
}

func statusCall() operator.StatusCall {
	call := operator.StatusCall{Call: payCall().Call, Channel: "web", Lang: "fr", Amount: "1200.00", Currency: "XOF"}
	call.DriverData = "v1f5720d"
	return call
}

// token is the response to a token exchange.
func token(value string) operatortest.Responder {
	return respond(200, fmt.Sprintf(`{"token_type":"Bearer","access_token":%q,"expires_in":7776000}`, value))
}

func orangeError(status int, code string) operatortest.Responder {
	return respond(status, fmt.Sprintf(`{"code":%s,"message":"very-private","description":"0707070707"}`, code))
}

// The bodies of the requests, and the results of the responses in the testdata.
func TestGoldenRequests(t *testing.T) {
	stub := suite(t).Stub(t, respond(201, operatortest.ReadFile(t, "pay-response.json")),
		respond(201, operatortest.ReadFile(t, "status-response.json")))
	want := operator.PayResponse{
		Result:     operator.Result{Outcome: operator.Succeeded, HTTPStatus: 201},
		DriverData: "v1f5720d", PayToken: "v1f5720d", NotifToken: notifToken,
		PaymentURL: "https://webpayment.orange-money.com/payment/pay_token/v1f5720d",
	}
	if diff := cmp.Diff(want, newDriver(t, suite(t), stub).Pay(t.Context(), payCall())); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	report := operator.StatusReport{Status: ledger.Successful, OperatorReference: "MP150709.1341.A00073"}
	if diff := cmp.Diff(operatortest.WithStatus(report), suite(t).LookUp(t, stub, statusCall())); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	for i, name := range []string{"pay-request.json", "status-request.json"} {
		if diff := cmp.Diff(operatortest.ReadFile(t, name), stub.Requests()[i].Body); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTestEnvironmentHasItsOwnCurrency(t *testing.T) {
	bench := suite(t).With(map[string]any{"segment": "dev"})
	stub := bench.Stub(t, respond(201, "{}"))
	newDriver(t, bench, stub).Pay(t.Context(), payCall())
	r := stub.Requests()[0]
	if r.Path != "/orange-money-webpay/dev/v1/webpayment" || !strings.Contains(r.Body, `"currency":"OUV"`) {
		t.Errorf("request %s %s", r.Path, r.Body)
	}
}

func TestPayOutcomes(t *testing.T) {
	page := operatortest.ReadFile(t, "pay-response.json")
	without := func(field string) operatortest.Responder {
		return respond(201, strings.Replace(page, field, "other", 1))
	}
	suite(t).CheckPayments(t, payCall(), operatortest.Outcomes{
		operatortest.Succeeded: {"200": respond(200, page)},
		operatortest.OurFault: {
			"missing field":    orangeError(400, "23"),
			"code as a text":   orangeError(400, `"23"`),
			"nested code":      respond(400, `{"error":{"error":{"code":23}}}`),
			"no such resource": orangeError(404, "60"),
		},
		operatortest.Unavailable: {"rate": orangeError(429, "53")},
		operatortest.KnownKey: {
			"repeated order_id":      orangeError(400, "1204"),
			"repeated order_id, 409": orangeError(409, "1204"),
			"repeated order_id, 500": orangeError(500, "1204"),
			"conflict":               respond(409, ""),
		},
		operatortest.Unknown: {
			"no pay_token":           without("pay_token"),
			"no payment_url":         without("payment_url"),
			"no notif_token":         without("notif_token"),
			"page is not an address": without("https://webpayment"),
			"invalid field":          orangeError(400, "22"),
			"23 with another status": orangeError(500, "23"),
			"invalid token":          orangeError(401, "41"),
			"401 of a firewall":      respond(401, "<html>"),
			"forbidden":              orangeError(403, "50"),
			"rate of a firewall":     respond(429, "<html>"),
			"503":                    orangeError(503, "5"),
			"500":                    orangeError(500, "1"),
		},
	})
}

func TestUnsentCalls(t *testing.T) {
	type edits = map[string]func(*operator.PayCall)
	longest := "https://gw.example/" + strings.Repeat("x", 120-len("https://gw.example/"))
	suite(t).CheckUnsent(t, payCall(), map[operatortest.Proof]edits{
		operatortest.OurFault: {
			"amount":          func(c *operator.PayCall) { c.Amount = "10.5" },
			"another country": func(c *operator.PayCall) { c.Country = "BF" },
			"notif_url":       func(c *operator.PayCall) { c.NotifyURL = longest + "x" },
		},
		operatortest.InvalidPart("return_url"): {
			"return_url": func(c *operator.PayCall) { c.ReturnURL = longest + "x" },
		},
		operatortest.InvalidPart("cancel_url"): {
			"cancel_url": func(c *operator.PayCall) { c.CancelURL = longest + "x" },
		},
	})
	call, lost := payCall(), statusCall()
	call.NotifyURL, call.ReturnURL, lost.DriverData = longest, longest, ""
	suite(t).CheckPayments(t, call, operatortest.Outcomes{
		operatortest.Succeeded: {"longest": respond(201, operatortest.ReadFile(t, "pay-response.json"))},
	})
	stub := operatortest.NewStubOperator(t)
	found := suite(t).LookUp(t, stub, lost)
	if sent := len(stub.Requests()); found.Cause == nil || found.Status != "" || sent != 0 {
		t.Errorf("a lookup without data of the driver: %+v; %d requests", found, sent)
	}
}

func TestAccountFields(t *testing.T) {
	suite(t).CheckFields(t, map[string]map[string]bool{
		"segment":       {"ci": true, "dev": true, "CI": false, "cd": false, "": false},
		"client_id":     {"abc": true, "a:b": false, "": false},
		"client_secret": {"a b": true},
		"merchant_key":  {" a": false},
		"base_url":      {"http://api.orange.com": false},
	})
}

// A token of 90 days is not used after any 401 of Orange.
func TestTokenIsDropped(t *testing.T) {
	page := respond(201, operatortest.ReadFile(t, "pay-response.json"))
	stub := operatortest.NewStubOperator(t)
	bench, now := suite(t), time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	bench.Now = func() time.Time { return now }
	driver := newDriver(t, bench, stub)
	pay := func(want int, steps ...operatortest.Responder) {
		t.Helper()
		stub.ClearRequests()
		stub.SetResponses(steps...)
		driver.Pay(t.Context(), payCall())
		if sent := len(stub.Requests()); sent != want {
			t.Errorf("%d requests, want %d", sent, want)
		}
	}
	pay(2, token("t1"), page)
	now = now.Add(89 * 24 * time.Hour)
	pay(1, orangeError(401, "41"))
	pay(2, token("t2"), page)
	pay(1, page)
}
