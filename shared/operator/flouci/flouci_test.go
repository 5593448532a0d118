package flouci_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/flouci"
)

const (
	platform   = "flouci-checkout"
	privateKey = "private-key-very-private"
	// driverData is what the driver stores at start.
	driverData = "AgCKuBm0S5uLPghBo571MQ 1795346400"
)

// start is the time of the payment.
var start = time.Unix(1795345200, 0)

// suite is the bench of the driver, at a time after the start of the payment.
func suite(t testing.TB, after time.Duration) operatortest.Suite {
	return operatortest.Suite{
		Platform: platform, DriverData: "AgCKuBm0S5uLPghBo571MQ 1",
		Account:              map[string]any{"public_key": "app-1", "private_key": privateKey},
		Renewed:              map[string]any{"private_key": "renewed-very-private"},
		Now:                  func() time.Time { return start.Add(after) },
		SuccessResponse:      operatortest.Always(respond(200, operatortest.ReadFile(t, "pay-response.json"))),
		NotAppliedResponse:   operatortest.Always(respond(400, failure)),
		TokenRefusedResponse: respond(401, failure),
		NotFoundResponse:     respond(404, `{"result":{"status":404,"message":"Payment not found"}}`),
		Lookup: &operatortest.Reports{
			Body: `{"success":true,"result":{"status":"STATUS","amount":AMOUNT,` +
				`"developer_tracking_id":"DemoShop_42"}}`,
			Amount: "1500000", OtherAmount: "1500", HasNoCurrency: true, // thousandths
			Statuses: map[string]ledger.Status{
				"PENDING": ledger.Pending, "SUCCESS": ledger.Successful, "FAILURE": ledger.Failed,
				"EXPIRED": ledger.Expired, "PREAUTH_SUCCESS": "", "SYSTEM_FAILURE": "", "success": "",
			},
		},
	}
}

const failure = `{"result":{"status":0,"message":"very-private"}}`

func TestConformance(t *testing.T) { operatortest.Run(t, suite(t, 0)) }

func respond(status int, body string) operatortest.Responder {
	return operatortest.Respond(status, body)
}

func payCall() operator.PayCall {
	call := operatortest.SamplePay(platform, "", "web")
	call.Amount = "1500.5"
	return call
}

func statusCall(data string) operator.StatusCall {
	call := operatortest.SampleStatus(platform, "")
	call.DriverData = data
	return call
}

func TestGoldenRequests(t *testing.T) {
	bench := suite(t, 0)
	stub := bench.Stub(t, respond(200, operatortest.ReadFile(t, "pay-response.json")),
		respond(200, operatortest.ReadFile(t, "status-response.json")))
	want := operator.PayResponse{
		Result: operator.Result{Outcome: operator.Succeeded, HTTPStatus: 200}, DriverData: driverData,
		PayToken: "AgCKuBm0S5uLPghBo571MQ", PaymentURL: "https://checkout.flouci.com/shop/AgCKuBm0S5uLPghBo571MQ",
		NotifToken: "700d041e0d167eeda55f90a4a0979fbb", // derived: stored with payments, so it never changes
	}
	got := operatortest.New[*flouci.Driver](t, bench, stub.URL).Pay(t.Context(), payCall())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	report := operatortest.WithStatus(operator.StatusReport{Status: ledger.Successful, Amount: "1500.500"})
	if diff := cmp.Diff(report, bench.LookUp(t, stub, statusCall(driverData))); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	for i, want := range []string{
		"POST /api/v2/generate_payment\nAuthorization: Bearer app-1:" + privateKey + "\n\n" +
			operatortest.ReadFile(t, "pay-request.json"),
		"GET /api/v2/verify_payment/AgCKuBm0S5uLPghBo571MQ\nAuthorization: Bearer app-1:" + privateKey,
	} {
		if diff := cmp.Diff(want, stub.Requests()[i].Text("Authorization")); diff != "" {
			t.Errorf("request %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestOutcomes(t *testing.T) {
	page := func(text, with string) operatortest.Responder {
		return respond(200, strings.Replace(operatortest.ReadFile(t, "pay-response.json"), text, with, 1))
	}
	suite(t, 0).CheckPayments(t, payCall(), operatortest.Outcomes{
		operatortest.Succeeded: {
			"page with 201":            respond(201, operatortest.ReadFile(t, "pay-response.json")),
			"page without our key":     page(`"developer_tracking_id"`, `"other"`),
			"page without a flag":      page(`"success"`, `"other"`),
			"page with a flag of null": page(`"success":true`, `"success":null`),
		},
		operatortest.OurFault: {
			"400": respond(400, failure),
			"401": respond(401, failure),
			"403": respond(403, failure),
		},
		operatortest.Unavailable: {"429": respond(429, failure)},
		operatortest.Unknown: {
			"page of another key":           page("DemoShop_42", "DemoShop_4"),
			"page with 400":                 respond(400, operatortest.ReadFile(t, "pay-response.json")),
			"no id":                         page(`"payment_id"`, `"other"`),
			"id with a space":               page("AgCK", "Ag CK"),
			"no link":                       page(`"link"`, `"other"`),
			"failure with 200":              respond(200, failure),
			"page of a failure":             page(`"success":true`, `"success":false`),
			"page of a failure at the root": page(`"name"`, `"success":false,"name"`),
			"page with a flag as a text":    page(`"success":true`, `"success":"false"`),
			"link of a failure with 400": respond(400, strings.Replace(operatortest.ReadFile(t, "pay-response.json"),
				`"success":true,"payment_id"`, `"success":false,"message"`, 1)),
			"404":               respond(404, failure),
			"409":               respond(409, failure),
			"429 of a firewall": respond(429, ""),
			"500":               respond(500, failure),
			"503":               respond(503, failure),
		},
	})
}

func TestUnsentCalls(t *testing.T) {
	type edits = map[string]func(*operator.PayCall)
	suite(t, 0).CheckUnsent(t, payCall(), map[operatortest.Proof]edits{
		operatortest.OurFault: {"another currency": func(c *operator.PayCall) { c.Currency = "XOF" }},
	})
	suite(t, 0).With(map[string]any{"public_key": "app:1"}).CheckUnsent(t, payCall(), map[operatortest.Proof]edits{
		operatortest.OurFault: {"a colon in a key": func(*operator.PayCall) {}},
	})
	stub := operatortest.NewStubOperator(t)
	got := suite(t, 0).LookUp(t, stub, statusCall(""))
	if got.Cause == nil || got.Responded() || len(stub.Requests()) != 0 {
		t.Errorf("a lookup without an id: %+v", got)
	}
}

// A failure and an expiry count only when the page has certainly ended.
func TestLookup(t *testing.T) {
	found := func(status string) operatortest.Responder {
		return respond(200, fmt.Sprintf(`{"success":true,"result":{"status":%q,"amount":"1500500"}}`, status))
	}
	flag := func(text string) operatortest.Responder {
		return respond(200, `{`+text+`"result":{"status":"SUCCESS","amount":1}}`)
	}
	reported := func(status ledger.Status) operator.StatusResponse {
		return operatortest.WithStatus(operator.StatusReport{Status: status, Amount: "1500.500"})
	}
	const end = 20 * time.Minute
	suite(t, end-time.Second).CheckLookups(t, statusCall(driverData), operatortest.Lookups{
		reported(ledger.Successful): {"paid in time": found("SUCCESS")},
		reported(ledger.Pending): {
			"failed in time":  found("FAILURE"),
			"expired in time": found("EXPIRED"),
		},
	})
	suite(t, end).CheckLookups(t, statusCall(driverData), operatortest.Lookups{
		reported(ledger.Failed):  {"failed": found("FAILURE")},
		reported(ledger.Expired): {"expired": found("EXPIRED")},
		operatortest.UnknownStatus: {
			"no amount":            respond(200, `{"success":true,"result":{"status":"SUCCESS"}}`),
			"part of a thousandth": respond(200, `{"success":true,"result":{"status":"SUCCESS","amount":1.5}}`),
		},
		operatortest.Unread: {
			"no flag":        flag(``),
			"false flag":     flag(`"success":false,`),
			"flag as a text": flag(`"success":"true",`),
			"flag twice":     flag(`"success":false,"success":true,`),
			"another key": respond(200,
				strings.Replace(operatortest.ReadFile(t, "status-response.json"), "_42", "_4", 1)),
			"paid with 404": respond(404, `{"success":true,"result":{"status":"SUCCESS","amount":"1500500"}}`),
			"not found":     respond(404, `{"result":{"status":404,"message":"Payment not found"}}`),
		},
	})
}

// The check of an account looks up an id that Flouci never made, without a time.
func TestLookupOfCheck(t *testing.T) {
	notFound := respond(404, `{"result":{"status":404,"message":"Payment not found"}}`)
	suite(t, 0).CheckLookups(t, statusCall("DemoShop_42"), operatortest.Lookups{
		operatortest.OrderNotFound: {"of Flouci": notFound},
		operatortest.Unread:        {"of a proxy": respond(404, "<html>not found</html>")},
	})
}
