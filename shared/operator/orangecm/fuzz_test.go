package orangecm

import (
	"net/http"
	"testing"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
)

const (
	fuzzToken  = "MP2201010123456789ABCDEF0123"
	successful = "SUCCESSFULL" //nolint:misspell // the platform's own spelling
)

// seeds are bodies of all kinds.
func seeds() []string {
	return []string{
		``, `{}`, `null`, `[]`, `{"data":null}`, `{"data":[]}`, `<ams:fault><ams:code>900901</ams:code></ams:fault>`,
		`{"data":{"payToken":"` + fuzzToken + `","inittxnstatus":"200","status":"PENDING","txnid":"MP1","amount":100}}`,
		`{"data":{"payToken":"` + fuzzToken + `","amount":"1","status":"` + successful + `"}}`,
		`{"data":{"payToken":"` + fuzzToken + `","inittxnstatus":"60019","status":"FAILED","txnid":null}}`,
		`{"payToken":"` + fuzzToken + `","status":"` + successful + `","message":"m"}`, `{"fault":{"code":900901}}`,
	}
}

// FuzzResponse reads any response to mp/pay and to the lookup. No outcome may be more certain than the response.
func FuzzResponse(f *testing.F) {
	for _, seed := range seeds() {
		for _, status := range []int{200, 302, 400, 401, 403, 409, 422, 429, 500, 503} {
			f.Add(status, seed)
		}
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		x := upstream.Exchange{Status: status, Header: http.Header{}, Body: []byte(body), MayHaveSent: true}
		result := classifyPayment(x, fuzzToken)
		doc, isDocument := x.Document()
		if (result.Outcome == operator.Succeeded) != (result.Fault == nil) {
			t.Fatalf("outcome %d with the fault %v", result.Outcome, result.Fault)
		}
		switch result.Outcome {
		case operator.Succeeded:
			if !isDocument || status/100 != 2 || upstream.Text(doc, "data.payToken") != fuzzToken {
				t.Errorf("a success by %d %q", status, body)
			}
		case operator.Refused:
			if !isDocument || payerRefusals[upstream.TextOrNumber(doc, "data.inittxnstatus")] == "" {
				t.Errorf("a refusal by %d %q", status, body)
			}
		case operator.NotApplied:
			if wso2Refusal(x) == "" {
				t.Errorf("not applied by %d %q", status, body)
			}
		}
		found := newLookup(operator.StatusCall{Call: operator.Call{DriverData: fuzzToken}}).ReadResponse(x)
		if (found.Status != "") != (found.Cause == nil) || found.Status != "" && found.OrderNotFound {
			t.Errorf("status %q, not found %v, cause %v", found.Status, found.OrderNotFound, found.Cause)
		}
		isOurs := isDocument && upstream.Text(doc, "data.payToken") == fuzzToken
		if found.Status == ledger.Successful && (found.Amount == "" || !isOurs) {
			t.Errorf("a successful payment by %q", body)
		}
	})
}

// FuzzCallback reads any callback.
func FuzzCallback(f *testing.F) {
	for _, seed := range seeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		report := (&Driver{}).ReadPaymentCallback(body)
		x := upstream.Exchange{Body: body}
		if _, isDocument := x.Document(); !isDocument && report != (operator.CallbackReport{}) {
			t.Errorf("a report by %q", body)
		}
	})
}
