package mtn_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// wire writes a request as the files of the documents' examples have it, with the headers of MTN's API.
func wire(r operatortest.Request) string {
	headers := []string{
		"Authorization", "X-Reference-Id", "X-Callback-Url", "Ocp-Apim-Subscription-Key", "X-Target-Environment",
		"Content-Type",
	}
	if r.Body == "" {
		headers = append(headers, "Content-Length")
	}
	return r.Text(headers...)
}

// documentedCall is the payment of MTN's examples.
func documentedCall() operator.PayCall {
	call := samplePay()
	call.OrderID, call.MSISDN, call.Amount = "ORDER-1", "0500000000", "500"
	return call
}

// The requests with the values of MTN's examples equal them, field for field. The examples' notes are a text of the
// merchant; ours are the order_id.
func TestDocumentedRequests(t *testing.T) {
	platformStub := stub(t, respond(202, ""), respond(200, operatortest.ReadFile(t, "document/successful.json")))
	driver := newDriver(goodAccount(platformStub.URL), time.Now)
	driver.Pay(t.Context(), documentedCall())
	found := driver.LookUpPayment(t.Context(), operator.StatusCall{Call: documentedCall().Call})
	want := operator.StatusResponse{StatusReport: operator.StatusReport{
		Status: ledger.Successful, Amount: "500", Currency: "XOF", MSISDN: "2250500000000",
		OperatorReference: "1000000001",
	}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("lookup (-want +got):\n%s", diff)
	}
	names := []string{"token.http", "requesttopay.http", "lookup.http"}
	if sent := len(platformStub.Requests()); sent != len(names) {
		t.Fatalf("%d requests, want %d", sent, len(names))
	}
	for i, r := range platformStub.Requests() {
		if diff := cmp.Diff(operatortest.ReadFile(t, "document/"+names[i]), wire(r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", names[i], diff)
		}
	}
}

// The errors of a request to pay, and the failed payment and the callback, as MTN's examples have them.
func TestDocumentedResponses(t *testing.T) {
	errors := []struct {
		status    int
		body      string
		outcome   operator.Outcome
		kind      fault.Kind
		duplicate bool
	}{
		{409, `{"code":"RESOURCE_ALREADY_EXIST","message":"Duplicated reference id. Creation of resource failed."}`,
			operator.Unknown, fault.OutcomeUnknown, true},
		{401, `{"statusCode":401,"message":"Access denied due to invalid subscription key..."}`,
			operator.NotApplied, fault.IntegrationRejected, false},
		{403, `{"statusCode":403,"message":"Forbidden"}`, operator.NotApplied, fault.IntegrationRejected, false},
	}
	for _, e := range errors {
		platformStub := stub(t, respond(e.status, e.body))
		result := newDriver(goodAccount(platformStub.URL), time.Now).Pay(t.Context(), documentedCall())
		if result.Outcome != e.outcome || result.Fault.Kind != e.kind || result.DuplicateKey != e.duplicate {
			t.Errorf("%d: outcome %d, %v", e.status, result.Outcome, result.Fault)
		}
	}
	platformStub := stub(t, respond(200, operatortest.ReadFile(t, "document/failed.json")))
	driver := newDriver(goodAccount(platformStub.URL), time.Now)
	failed := driver.LookUpPayment(t.Context(), operator.StatusCall{Call: documentedCall().Call})
	if failed.Status != ledger.Failed || failed.Reason != ledger.WalletUnknown {
		t.Errorf("failed payment %+v", failed)
	}
	want := operator.CallbackReport{OrderID: "947354", StatusReport: operator.StatusReport{
		Status: ledger.Successful, Amount: "100", Currency: "XAF", MSISDN: "237670000000",
		OperatorReference: "23503452",
	}}
	got := driver.ReadPaymentCallback([]byte(operatortest.ReadFile(t, "document/callback.json")))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("callback (-want +got):\n%s", diff)
	}
}
