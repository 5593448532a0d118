package mtn_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/mtn"
)

// documentedCall is the payment of MTN's examples.
func documentedCall() operator.PayCall {
	call := samplePay()
	call.OrderID, call.MSISDN = "ORDER-1", "0500000000"
	return call
}

// The requests with the values of MTN's examples equal them, field for field. The examples' notes are a text of the
// merchant; ours are the order_id. The currency of the sandbox is not used.
func TestDocumentedRequests(t *testing.T) {
	stub := operatortest.NewStubOperator(t, respond(200, operatortest.ReadFile(t, "token.json")), respond(202, ""),
		respond(200, operatortest.ReadFile(t, "document/successful.json")))
	driver := operatortest.New[*mtn.Driver](t, suite().With(map[string]any{"currency": "EUR"}), stub.URL)
	paid := operator.PayResponse{Result: operator.Result{Outcome: operator.Succeeded, HTTPStatus: 202}}
	if diff := cmp.Diff(paid, driver.Pay(t.Context(), documentedCall())); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
	found := driver.LookUpPayment(t.Context(), operator.StatusCall{Call: documentedCall().Call})
	want := operator.StatusResponse{StatusReport: operator.StatusReport{
		Status: ledger.Successful, Amount: "500", Currency: "XOF", MSISDN: "2250500000000",
		OperatorReference: "1000000001",
	}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("lookup (-want +got):\n%s", diff)
	}
	headers := []string{
		"Authorization", "X-Reference-Id", "X-Callback-Url", "Ocp-Apim-Subscription-Key", "X-Target-Environment",
		"Content-Type", "Content-Length",
	}
	operatortest.CheckRequests(t, stub, headers, "token.http", "requesttopay.http", "lookup.http")
}

// The failed payment and the callback as MTN's examples have them. The errors are in TestPaymentOutcomes.
func TestDocumentedResponses(t *testing.T) {
	failed := full(ledger.Failed, ledger.WalletUnknown)
	failed.MSISDN = "2250500000000"
	suite().CheckLookups(t, operator.StatusCall{Call: documentedCall().Call}, operatortest.Lookups{
		operatortest.WithStatus(failed): {"failed": respond(200, operatortest.ReadFile(t, "document/failed.json"))},
	})
	suite().CheckCallbacks(t, map[operator.CallbackReport]map[string]string{
		{OrderID: "947354", StatusReport: operator.StatusReport{
			Status: ledger.Successful, Amount: "100", Currency: "XAF", MSISDN: "237670000000",
			OperatorReference: "23503452",
		}}: {"callback": operatortest.ReadFile(t, "document/callback.json")},
	})
}
