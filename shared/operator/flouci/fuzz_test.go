package flouci

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
)

// FuzzResponse reads any response to a payment and to a lookup. It must not panic, and no result may be more certain
// than the response.
func FuzzResponse(f *testing.F) {
	for _, name := range []string{"pay-response", "status-response"} {
		text, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(200, string(text))
	}
	for _, status := range []int{200, 302, 400, 401, 403, 404, 409, 429, 500, 503} {
		f.Add(status, `{"result":{"message":"m"}}`)
	}
	call := operator.StatusCall{Call: operator.Call{UpstreamKey: "DemoShop_42", DriverData: "id 1"}}
	f.Fuzz(func(t *testing.T, status int, body string) {
		x := upstream.Exchange{Status: status, Header: http.Header{}, Body: []byte(body), MayHaveSent: true}
		page := readPage(x, "DemoShop_42", time.Unix(0, 0))
		isComplete := page.PayToken != "" && page.PaymentURL != "" && page.DriverData == page.PayToken+" 0"
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
			t.Error("Flouci never refuses a payment when its page is created")
		case operator.Unknown:
		}
		found := newLookup(call, time.Unix(0, 0)).ReadResponse(x)
		if (found.Status == "") == (found.Cause == nil) || found.OrderNotFound {
			t.Errorf("status %q, cause %v by %d %q", found.Status, found.Cause, status, body)
		}
		isPaid := found.Status == ledger.Successful
		if found.Status != "" && !isPaid && found.Status != ledger.Pending {
			t.Errorf("status %q while the page can be paid", found.Status)
		}
		if isPaid && (!x.IsSuccess() || found.Amount == "" || !strings.Contains(strings.ToLower(body), "success")) {
			t.Errorf("successful by %d %q", status, body)
		}
	})
}
