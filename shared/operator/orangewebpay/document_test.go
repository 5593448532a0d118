package orangewebpay_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// wire writes a request as the files of the documents' examples have it, with the headers of Orange's API.
func wire(r operatortest.Request) string {
	text := r.Method + " " + r.Path + "\n"
	for _, name := range []string{"Authorization", "Accept", "Content-Type"} {
		if value := r.Header.Get(name); name != "Accept" || !strings.HasPrefix(r.Path, "/oauth") {
			text += name + ": " + value + "\n"
		}
	}
	return text + "\n" + r.Body
}

// The requests with the values of Orange's examples equal them, and the examples' responses are read.
func TestDocumentedExamples(t *testing.T) {
	stub := operatortest.NewStubOperator(t, token(firstToken, "7776000"),
		operatortest.Respond(201, operatortest.ReadFile(t, "document/webpayment.json")),
		operatortest.Respond(201, operatortest.ReadFile(t, "document/transactionstatus.json")))
	fields := account(stub.URL)
	fields["merchant_key"] = "ab12"
	driver := newDriver(t, fields, newClock())
	call := payCall()
	call.UpstreamKey, call.OrderID, call.Reference = "MY_ORDER_1", "MY_ORDER_1", "ref Merchant"
	call.ReturnURL, call.CancelURL, call.NotifyURL = "https://m/ret", "https://m/can", "https://m/notif"
	page := driver.Pay(t.Context(), call)
	if page.Outcome != operator.Succeeded || page.NotifToken != "dd497bda3b250e536186fc0663f32f40" {
		t.Fatalf("page %+v", page)
	}
	lookup := statusCall()
	lookup.UpstreamKey, lookup.DriverData = "MY_ORDER_1", page.DriverData
	want := operator.StatusReport{Status: ledger.Successful, OperatorReference: "MP150709.1341.A00073"}
	found := driver.LookUpPayment(t.Context(), lookup)
	if diff := cmp.Diff(operator.StatusResponse{StatusReport: want}, found); diff != "" {
		t.Errorf("lookup (-want +got):\n%s", diff)
	}
	names := []string{"token.http", "webpayment.http", "transactionstatus.http"}
	if sent := len(stub.Requests()); sent != len(names) {
		t.Fatalf("%d requests, want %d", sent, len(names))
	}
	for i, r := range stub.Requests() {
		if diff := cmp.Diff(operatortest.ReadFile(t, "document/"+names[i]), wire(r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", names[i], diff)
		}
	}
}
