package pawapay_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/pawapay"
)

func found(data string) string { return `{"status":"FOUND","data":` + data + `}` }

func sampleLookup() operator.StatusCall {
	return operator.StatusCall{Call: samplePay().Call, Channel: "tpe", Lang: "fr", Amount: "1500", Currency: "XOF"}
}

// completed is the report of completed.json.
var completed = operator.StatusReport{
	Status: ledger.Successful, Amount: "1500.00", Currency: "XOF", MSISDN: "2250707070707", OperatorReference: "tx-1",
}

func TestLookup(t *testing.T) {
	only := func(status ledger.Status, reason ledger.FailureReason) operator.StatusResponse {
		return operatortest.Reported(operator.StatusReport{Status: status, Reason: reason})
	}
	failed := func(code string) operatortest.Responder {
		return respond(200, found(data("FAILED", `,"failureReason":{"failureCode":"`+code+`","failureMessage":"m"}`)))
	}
	suite(t).CheckLookups(t, sampleLookup(), operatortest.Lookups{
		operatortest.Reported(completed): {
			"completed": respond(200, found(operatortest.ReadFile(t, "completed.json"))),
		},
		only(ledger.Cancelled, ""):                 {"not approved": failed("PAYMENT_NOT_APPROVED")},
		only(ledger.Failed, ledger.NotEnoughFunds): {"funds": failed("INSUFFICIENT_BALANCE")},
		only(ledger.Failed, ledger.LimitReached): {
			"limit":        failed("PAYER_LIMIT_REACHED"),
			"wallet limit": failed("WALLET_LIMIT_REACHED"),
		},
		only(ledger.Failed, ledger.WalletUnknown): {"no wallet": failed("PAYER_NOT_FOUND")},
		only(ledger.Failed, ""): {
			"another payment": failed("PAYMENT_IN_PROGRESS"),
			"new code":        failed("SOMETHING_NEW"),
			"unspecified":     failed("UNSPECIFIED_FAILURE"),
			"no reason":       respond(200, found(data("FAILED", `,"failureReason":null`))),
		},
		operatortest.UnknownStatus: {
			"completed without amount": respond(200, found(data("COMPLETED", `,"currency":"XOF"`))),
		},
		operatortest.OrderNotFound: {"not found": respond(200, `{"status":"NOT_FOUND"}`)},
		operatortest.Unread: {
			"404":                  respond(404, `{"status":"NOT_FOUND"}`),
			"another deposit":      respond(200, found(`{"depositId":"x","status":"COMPLETED"}`)),
			"no deposit":           respond(200, `{"status":"FOUND"}`),
			"no data status":       respond(200, found(`{"depositId":"`+depositID+`"}`)),
			"data of another type": respond(200, `{"status":"FOUND","data":[]}`),
			"status twice":         respond(200, `{"status":"FOUND","status":"NOT_FOUND"}`),
			"401":                  respond(401, failure("NO_AUTHENTICATION")),
			"500":                  respond(500, failure("UNKNOWN_ERROR")),
		},
	})
}

func TestCallback(t *testing.T) {
	pending := operator.StatusReport{Status: ledger.Pending}
	suite(t).CheckCallbacks(t, map[operator.CallbackReport]map[string]string{
		{OrderID: "DemoShop_42", UpstreamKey: depositID, StatusReport: completed}: {
			"completed": operatortest.ReadFile(t, "completed.json"),
		},
		{OrderID: "DemoShop_42", UpstreamKey: depositID, StatusReport: pending}: {
			"metadata list":    data("PROCESSING", `,"metadata":[{"a":"b"},{"orderId":"DemoShop_42"}]`),
			"client reference": data("PROCESSING", `,"clientReferenceId":"DemoShop_42"`),
		},
		{UpstreamKey: depositID}: {"no order": data("QUEUED", "")},
		{StatusReport: operator.StatusReport{Amount: "1", Currency: "XOF"}}: {
			"payout": `{"payoutId":"p","status":"COMPLETED","amount":"1","currency":"XOF"}`,
		},
		{}: {"status twice": `{"status":"FAILED","status":"COMPLETED"}`},
	})
}

// No response but a 200 makes a deposit succeed, and no lookup does without its id, amount and currency.
func FuzzResponse(f *testing.F) {
	f.Add(200, found(operatortest.ReadFile(f, "completed.json")))
	f.Add(200, data("ACCEPTED", ""))
	f.Add(200, rejected("INVALID_AMOUNT"))
	f.Add(403, failure("AUTHENTICATION_ERROR"))
	f.Fuzz(func(t *testing.T, status int, body string) {
		driver := operatortest.Over[*pawapay.Driver](t, suite(t), func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body))}, nil
		})
		paid := driver.Pay(t.Context(), samplePay())
		if paid.Outcome == operator.Succeeded && status != 200 {
			t.Errorf("%d %q is a success", status, body)
		}
		if (paid.Outcome == operator.Succeeded) != (paid.Fault == nil) {
			t.Errorf("%d %q: outcome %d, %v", status, body, paid.Outcome, paid.Fault)
		}
		report := driver.LookUpPayment(t.Context(), sampleLookup())
		if report.Status == ledger.Successful && (status != 200 || report.Amount == "" || report.Currency == "") {
			t.Errorf("%d %q: %+v", status, body, report)
		}
		if report.Status != "" && report.Cause != nil {
			t.Errorf("%d %q: %+v", status, body, report)
		}
	})
}

func FuzzCallback(f *testing.F) {
	f.Add(operatortest.ReadFile(f, "completed.json"))
	f.Add(data("FAILED", `,"metadata":[{"orderId":"DemoShop_42"}]`))
	driver := newDriver(f, "https://api.pawapay.io")
	f.Fuzz(func(t *testing.T, body string) {
		report := driver.ReadPaymentCallback([]byte(body))
		if report.Status == ledger.Successful && (report.UpstreamKey == "" || report.Amount == "") {
			t.Errorf("%q is a success", body)
		}
	})
}
