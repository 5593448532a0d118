package wave_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// The requests with the values of Wave's examples equal them, and the examples' responses are read. The examples leave
// out the addresses.
func TestDocumentedExamples(t *testing.T) {
	session := operatortest.ReadFile(t, "document/session.json")
	stub := operatortest.NewStubOperator(t, respond(200, session),
		respond(200, `{"result":[`+session+`]}`), respond(200, `{"result":[]}`))
	driver := newDriver(t, stub.URL)
	call := payCall()
	call.UpstreamKey, call.OrderID = "ORD1", "ORD1"
	call.ReturnURL, call.CancelURL = "https://shop.example/success", "https://shop.example/error"
	if page := driver.Pay(t.Context(), call); page.PaymentURL != "https://pay.wave.com/c/cos-1example" {
		t.Fatalf("page %+v", page)
	}
	lookup := statusCall()
	lookup.UpstreamKey = "ORD1"
	want := operator.StatusReport{Status: ledger.Pending, Amount: "1000", Currency: "XOF"}
	found := driver.LookUpPayment(t.Context(), lookup)
	if diff := cmp.Diff(operator.StatusResponse{StatusReport: want}, found); diff != "" {
		t.Errorf("lookup (-want +got):\n%s", diff)
	}
	if found = driver.LookUpPayment(t.Context(), lookup); !found.OrderNotFound {
		t.Errorf("an empty result is %+v", found)
	}
	headers := []string{"Authorization", "Wave-Signature", "Idempotency-Key", "Content-Type"}
	operatortest.CheckRequests(t, stub, headers, "create.http", "search.http", "search.http")
}
