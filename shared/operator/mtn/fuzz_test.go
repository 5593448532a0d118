package mtn_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/mtn"
)

func bodyOf(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }

// No response makes a payment succeed but an empty 202, and no lookup without the order, the amount and the currency.
func FuzzResponse(f *testing.F) {
	for _, name := range []string{"successful.json", "failed.json", "failed-object.json"} {
		f.Add(200, operatortest.ReadFile(f, name))
	}
	f.Add(202, "")
	f.Add(500, code("NOT_ENOUGH_FUNDS"))
	f.Add(401, inFront401)
	f.Fuzz(func(t *testing.T, status int, body string) {
		driver := operatortest.Over[*mtn.Driver](t, suite(), func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == tokenPath {
				return &http.Response{StatusCode: 200, Body: bodyOf(operatortest.ReadFile(t, "token.json"))}, nil
			}
			return &http.Response{StatusCode: status, Body: bodyOf(body)}, nil
		})
		paid := driver.Pay(t.Context(), samplePay())
		if paid.Outcome == operator.Succeeded && (status != 202 || strings.TrimSpace(body) != "") {
			t.Errorf("%d %q is a success", status, body)
		}
		if (paid.Outcome == operator.Succeeded) != (paid.Fault == nil) {
			t.Errorf("%d %q: outcome %d, %v", status, body, paid.Outcome, paid.Fault)
		}
		found := driver.LookUpPayment(t.Context(), sampleLookup())
		if found.Status != "" && (status != 200 || found.Cause != nil) {
			t.Errorf("%d %q: %+v", status, body, found)
		}
		if found.Status == ledger.Successful && (found.Amount == "" || found.Currency == "") {
			t.Errorf("%q is a success", body)
		}
	})
}

func FuzzCallback(f *testing.F) {
	for _, name := range []string{"successful.json", "failed.json", "failed-object.json"} {
		f.Add(operatortest.ReadFile(f, name))
	}
	driver := operatortest.Over[*mtn.Driver](f, suite(), nil)
	f.Fuzz(func(t *testing.T, body string) {
		report := driver.ReadPaymentCallback([]byte(body))
		if report.Status == ledger.Successful && (report.OrderID == "" || report.Amount == "") {
			t.Errorf("%q is a success", body)
		}
	})
}
