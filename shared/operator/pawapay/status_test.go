package pawapay_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/secret"
)

func found(data string) string { return `{"status":"FOUND","data":` + data + `}` }

func data(status, rest string) string {
	return `{"depositId":"` + depositID + `","status":"` + status + `"` + rest + `}`
}

func TestLookup(t *testing.T) {
	completed := operator.StatusReport{
		Status: ledger.Successful, Amount: "1500.00", Currency: "XOF", MSISDN: "2250707070707",
		OperatorReference: "tx-1",
	}
	only := func(status ledger.Status, reason ledger.FailureReason) operator.StatusReport {
		return operator.StatusReport{Status: status, Reason: reason}
	}
	failed := func(code string) string {
		return found(data("FAILED", `,"failureReason":{"failureCode":"`+code+`","failureMessage":"m"}`))
	}
	nothing := operator.StatusReport{}
	cases := []struct {
		name      string
		status    int
		body      string
		want      operator.StatusReport
		notFound  bool
		responded bool
	}{
		{"completed", 200, found(operatortest.ReadFile(t, "completed.json")), completed, false, true},
		{"completed without amount", 200, found(data("COMPLETED", `,"currency":"XOF"`)), nothing, false, true},
		{"accepted", 200, found(data("ACCEPTED", "")), only(ledger.Pending, ""), false, true},
		{"submitted", 200, found(data("SUBMITTED", "")), only(ledger.Pending, ""), false, true},
		{"processing", 200, found(data("PROCESSING", "")), only(ledger.Pending, ""), false, true},
		{"in reconciliation", 200, found(data("IN_RECONCILIATION", "")), only(ledger.Pending, ""), false, true},
		{"unknown word", 200, found(data("EXPIRED", "")), nothing, false, true},
		{"not approved", 200, failed("PAYMENT_NOT_APPROVED"), only(ledger.Cancelled, ""), false, true},
		{"funds", 200, failed("INSUFFICIENT_BALANCE"), only(ledger.Failed, ledger.NotEnoughFunds), false, true},
		{"limit", 200, failed("PAYER_LIMIT_REACHED"), only(ledger.Failed, ledger.LimitReached), false, true},
		{"wallet limit", 200, failed("WALLET_LIMIT_REACHED"), only(ledger.Failed, ledger.LimitReached), false, true},
		{"another payment", 200, failed("PAYMENT_IN_PROGRESS"), only(ledger.Failed, ""), false, true},
		{"new code", 200, failed("SOMETHING_NEW"), only(ledger.Failed, ""), false, true},
		{"no wallet", 200, failed("PAYER_NOT_FOUND"), only(ledger.Failed, ledger.WalletUnknown), false, true},
		{"unspecified", 200, failed("UNSPECIFIED_FAILURE"), only(ledger.Failed, ""), false, true},
		{"no reason", 200, found(data("FAILED", `,"failureReason":null`)), only(ledger.Failed, ""), false, true},
		{"not found", 200, `{"status":"NOT_FOUND"}`, nothing, true, true},
		{"404", 404, `{"status":"NOT_FOUND"}`, nothing, false, false},
		{"another deposit", 200, found(`{"depositId":"x","status":"COMPLETED"}`), nothing, false, false},
		{"no deposit", 200, `{"status":"FOUND"}`, nothing, false, false},
		{"no data status", 200, found(`{"depositId":"` + depositID + `"}`), nothing, false, false},
		{"data of another type", 200, `{"status":"FOUND","data":[]}`, nothing, false, false},
		{"status twice", 200, `{"status":"FOUND","status":"NOT_FOUND"}`, nothing, false, false},
		{"HTML", 200, html, nothing, false, false},
		{"401", 401, failure("NO_AUTHENTICATION"), nothing, false, false},
		{"500", 500, failure("UNKNOWN_ERROR"), nothing, false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t, operatortest.Respond(c.status, c.body))
			got := newDriver(stub.URL).LookUpPayment(t.Context(), sampleLookup())
			if diff := cmp.Diff(c.want, got.StatusReport); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			if got.OrderNotFound != c.notFound || got.Responded() != c.responded ||
				(got.Cause == nil) != (got.Status != "") {
				t.Errorf("not found %v, responded %v, cause %v", got.OrderNotFound, got.Responded(), got.Cause)
			}
			if path := stub.Requests()[0].Path; path != "/v2/deposits/"+depositID {
				t.Errorf("path %s", path)
			}
			checkNoSecrets(t, got.Cause)
		})
	}
}

func TestCallback(t *testing.T) {
	driver := newDriver("https://api.pawapay.io")
	completed := operator.CallbackReport{
		StatusReport: operator.StatusReport{
			Status: ledger.Successful, Amount: "1500.00", Currency: "XOF", MSISDN: "2250707070707",
			OperatorReference: "tx-1",
		},
		OrderID: "DemoShop_42", UpstreamKey: depositID,
	}
	pending := operator.CallbackReport{
		StatusReport: operator.StatusReport{Status: ledger.Pending}, OrderID: "DemoShop_42", UpstreamKey: depositID,
	}
	cases := []struct {
		name string
		body string
		want operator.CallbackReport
	}{
		{"completed", operatortest.ReadFile(t, "completed.json"), completed},
		{"metadata list", data("PROCESSING", `,"metadata":[{"a":"b"},{"orderId":"DemoShop_42"}]`), pending},
		{"client reference", data("PROCESSING", `,"clientReferenceId":"DemoShop_42"`), pending},
		{"no order", data("QUEUED", ""), operator.CallbackReport{UpstreamKey: depositID}},
		{"payout", `{"payoutId":"p","status":"COMPLETED","amount":"1","currency":"XOF"}`, operator.CallbackReport{
			StatusReport: operator.StatusReport{Amount: "1", Currency: "XOF"},
		}},
		{"HTML", html, operator.CallbackReport{}},
		{"empty", "", operator.CallbackReport{}},
		{"array", "[]", operator.CallbackReport{}},
		{"status twice", `{"status":"FAILED","status":"COMPLETED"}`, operator.CallbackReport{}},
	}
	for _, c := range cases {
		if diff := cmp.Diff(c.want, driver.ReadPaymentCallback([]byte(c.body))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// No response but a 200 makes a deposit succeed, and no lookup does without its id, amount and currency.
func FuzzResponse(f *testing.F) {
	f.Add(200, found(operatortest.ReadFile(f, "completed.json")))
	f.Add(200, accepted("ACCEPTED", depositID))
	f.Add(200, rejected("INVALID_AMOUNT"))
	f.Add(403, failure("AUTHENTICATION_ERROR"))
	f.Fuzz(func(t *testing.T, status int, body string) {
		accounts := secret.Static(accountsOf("https://api.pawapay.io", "t", pathSecret))
		driver := newDriverOf(accounts, roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body))}, nil
		}))
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
	driver := newDriver("https://api.pawapay.io")
	f.Fuzz(func(t *testing.T, body string) {
		report := driver.ReadPaymentCallback([]byte(body))
		if report.Status == ledger.Successful && (report.UpstreamKey == "" || report.Amount == "") {
			t.Errorf("%q is a success", body)
		}
	})
}
