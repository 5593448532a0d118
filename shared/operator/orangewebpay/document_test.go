package orangewebpay_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// The requests with the values of Orange's examples equal them, and the examples' responses are read.
func TestDocumentedExamples(t *testing.T) {
	exchange := respond(200, operatortest.ReadFile(t, "token-response.json"))
	stub := operatortest.NewStubOperator(t, exchange,
		respond(201, operatortest.ReadFile(t, "document/webpayment.json")),
		respond(201, operatortest.ReadFile(t, "document/transactionstatus.json")))
	driver := newDriver(t, suite(t).With(map[string]any{"merchant_key": "ab12"}), stub)
	call := payCall()
	call.UpstreamKey, call.OrderID, call.Reference = "MY_ORDER_1", "MY_ORDER_1", "ref Merchant"
	call.ReturnURL, call.CancelURL, call.NotifyURL = "https://m/ret", "https://m/can", "https://m/notif"
	page := driver.Pay(t.Context(), call)
	if page.Outcome != operator.Succeeded || page.NotifToken != notifToken {
		t.Fatalf("page %+v", page)
	}
	lookup := statusCall()
	lookup.UpstreamKey, lookup.DriverData = "MY_ORDER_1", page.DriverData
	want := operator.StatusReport{Status: ledger.Successful, OperatorReference: "MP150709.1341.A00073"}
	found := driver.LookUpPayment(t.Context(), lookup)
	if diff := cmp.Diff(operator.StatusResponse{StatusReport: want}, found); diff != "" {
		t.Errorf("lookup (-want +got):\n%s", diff)
	}
	headers := []string{"Authorization", "Accept", "Content-Type"}
	operatortest.CheckRequests(t, stub, headers, "token.http", "webpayment.http", "transactionstatus.http")
}
