package wave

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

// FuzzResponse reads any response to a creation, a search and a callback. It must not panic, and no result may be more
// certain than the response.
func FuzzResponse(f *testing.F) {
	for _, name := range []string{"session-open.json", "session-paid.json"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(200, string(text))
		f.Add(200, `{"result":[`+string(text)+`,`+string(text)+`]}`)
		f.Add(200, `{"type":"checkout.session.completed","data":`+string(text)+`}`)
	}
	for _, status := range []int{200, 302, 400, 401, 403, 404, 409, 429, 500} {
		f.Add(status, `{"code":"request-validation-error"}`)
		f.Add(status, `{"error":{"code":"invalid-auth"}}`)
		f.Add(status, `{"result":[]}`)
	}
	request := sessionRequest{Amount: "1000", Currency: "XOF", Reference: "DemoShop_42"}
	driver := New(nil, nil, time.Now)
	f.Fuzz(func(t *testing.T, status int, body string) {
		x := upstream.Exchange{Status: status, Header: http.Header{}, Body: []byte(body), MayHaveSent: true}
		created := readCreated(x, request)
		isComplete := created.PayToken != "" && created.PaymentURL != "" && created.NotifToken != ""
		switch created.Outcome {
		case operator.Succeeded:
			if !x.IsSuccess() || !isComplete || !strings.Contains(body, "processing") {
				t.Errorf("Succeeded by %d %q", status, body)
			}
		case operator.NotApplied:
			if status < 400 || status > 499 || status == 409 {
				t.Errorf("NotApplied by %d", status)
			}
		case operator.Refused:
			t.Error("Wave never refuses a payment when it is created")
		case operator.Unknown:
		}
		sessions, notFound, err := readSessions(x, request.Reference)
		if (err == nil) != (len(sessions) > 0) || notFound && status != 404 && !strings.Contains(body, "result") {
			t.Errorf("%d sessions, not found %v, %v", len(sessions), notFound, err)
		}
		r := driver.ReadPaymentCallback([]byte(body))
		if r.Status == ledger.Successful && (r.OrderID == "" || r.Amount == "" || r.Currency == "") {
			t.Errorf("successful without the required fields: %+v", r)
		}
	})
}
