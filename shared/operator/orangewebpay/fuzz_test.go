package orangewebpay

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
)

// FuzzResponse reads any response to a payment, a lookup and a token exchange, and any callback. It must not panic, and
// no result may be more certain than the response.
func FuzzResponse(f *testing.F) {
	for _, name := range []string{"pay-response", "status-response", "token-response", "callback"} {
		text, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(201, string(text))
	}
	for _, status := range []int{200, 302, 400, 401, 403, 404, 409, 429, 500, 503} {
		for _, code := range []string{"22", "23", "42", "53", "60", "1204"} {
			f.Add(status, `{"code":`+code+`}`)
			f.Add(status, `{"error":{"error":{"code":"`+code+`"}}}`)
		}
	}
	driver, call := New(nil, nil, nil), operator.StatusCall{Call: operator.Call{UpstreamKey: "DemoShop_42"}}
	f.Fuzz(func(t *testing.T, status int, body string) {
		x := upstream.Exchange{Status: status, Header: http.Header{}, Body: []byte(body), MayHaveSent: true}
		page := readPage(x)
		isComplete := page.PayToken != "" && page.PaymentURL != "" && page.NotifToken != "" && page.DriverData != ""
		switch page.Outcome {
		case operator.Succeeded:
			if !x.IsSuccess() || !isComplete {
				t.Errorf("Succeeded by %d %q", status, body)
			}
		case operator.NotApplied:
			if status < 400 || status > 499 || status == 409 {
				t.Errorf("NotApplied by %d", status)
			}
		case operator.Refused:
			t.Error("Orange never refuses a payment when its page is created")
		case operator.Unknown:
		}
		found := newLookup(call, nil).ReadResponse(x)
		isOurs := x.IsSuccess() && strings.Contains(body, "status")
		if (found.Status == "") == (found.Cause == nil) || found.Status != "" && !isOurs || found.OrderNotFound {
			t.Errorf("status %q, cause %v by %d %q", found.Status, found.Cause, status, body)
		}
		report := driver.ReadPaymentCallback([]byte(body))
		if report.Status == ledger.Successful && report.NotifToken == "" {
			t.Error("successful without notif_token")
		}
	})
}
