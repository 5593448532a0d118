package pawapay_test

import (
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/operator"
)

// The requests have every field of pawaPay's example, in its form. The values differ where they must: the example is
// for a wallet of Zambia, has another clientReferenceId than order number, and a second entry of metadata.
func TestDocumentedExamples(t *testing.T) {
	const response = `{"depositId":"` + depositID + `","status":"ACCEPTED","created":"2020-10-19T11:17:01Z"}`
	stub := operatortest.NewStubOperator(t,
		respond(200, response), respond(200, `{"status":"NOT_FOUND"}`))
	driver := newDriver(t, stub.URL)
	call := samplePay()
	call.Operator, call.Country, call.MSISDN, call.OTP = "orange", "BF", "07345678", "123456"
	call.Amount, call.OrderID, call.Reference = "15", "ORD-123456789", "Note of 4 to 22 chars"
	if result := driver.Pay(t.Context(), call); result.Outcome != operator.Succeeded {
		t.Fatalf("outcome %d: %v", result.Outcome, result.Fault)
	}
	driver.LookUpPayment(t.Context(), operator.StatusCall{Call: call.Call})
	headers := []string{"Authorization", "Signature", "Content-Digest", "Content-Type"}
	operatortest.CheckRequests(t, stub, headers, "deposit.http", "lookup.http")
}
