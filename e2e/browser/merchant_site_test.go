package browser

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mobilegateway/local"
	"mobilegateway/proof/kits/localtest"
)

// speed shortens the 15 minutes of a PIN to 15 seconds.
const speed = 60

// merchantSite is a merchant with a website, a gateway, and the sandbox's control port.
type merchantSite struct {
	gateway local.Info
	site    *httptest.Server
	notify  string // notif_url for a payment without the gateway; "": through the gateway
	orders  atomic.Int64
}

// newMerchantSite starts the gateway and the website. The website redirects returning users to another host name, as
// many sites do, and the page's content policy must allow that.
func newMerchantSite(t *testing.T) *merchantSite {
	t.Helper()
	s := &merchantSite{gateway: localtest.Start(t, localtest.Options{Speed: speed}).Info()}
	mux := http.NewServeMux()
	for _, place := range []string{"return", "cancel"} {
		mux.HandleFunc("GET /"+place, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.Host, "127.0.0.1") {
				http.Redirect(w, r, strings.Replace(s.site.URL, "127.0.0.1", "localhost", 1)+"/"+place,
					http.StatusFound)
				return
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprintf(w, "<!doctype html><title>The shop: %s</title>", place)
		})
	}
	s.site = httptest.NewServer(mux)
	t.Cleanup(s.site.Close)
	return s
}

// newOrderID returns a new order_id.
func (s *merchantSite) newOrderID() string {
	return fmt.Sprintf("%s_%d%03d", s.gateway.Merchant, time.Now().Unix(), s.orders.Add(1))
}

// jsonRequest is a request with a JSON body.
type jsonRequest struct {
	method, address string
	header          http.Header
	body            any
}

// mustSend sends the request, which must succeed, and decodes the response.
func (r jsonRequest) mustSend(t *testing.T, response any) {
	t.Helper()
	status, text := r.send(t)
	if status/100 != 2 {
		t.Fatalf("%s %s: %d %s", r.method, r.address, status, text)
	}
	if err := json.Unmarshal([]byte(text), response); err != nil {
		t.Fatal(err)
	}
}

// send sends the request and returns the status and the body of the response.
func (r jsonRequest) send(t *testing.T) (status int, body string) {
	t.Helper()
	text, err := json.Marshal(r.body)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	maps.Copy(header, r.header)
	status, _, body = localtest.Send(t, r.method, r.address, string(text), header)
	return status, body
}

// headers returns the headers of a web payment.
func (s *merchantSite) headers(lang string) http.Header {
	return http.Header{
		"Authorization": {"Bearer " + s.gateway.AccessToken}, "Mno-Name": {"sandbox"}, "Country-Code": {"CI"},
		"Channel": {"web"}, "Lang": {lang},
	}
}

// newPayment returns the request of a web payment.
func (s *merchantSite) newPayment(order, lang string) jsonRequest {
	return jsonRequest{
		http.MethodPost, s.gateway.BaseURL + "/mobilemoney/v1", s.headers(lang), s.paymentBody(order),
	}
}

// control returns a request to the sandbox's control port.
func (s *merchantSite) control(method, path string, body any) jsonRequest {
	return jsonRequest{method, s.gateway.SandboxURL + "/sandbox/v1/" + path, nil, body}
}

// createPayment starts a web payment and returns the address of its page.
func (s *merchantSite) createPayment(t *testing.T, order, lang string) string {
	t.Helper()
	var response paymentResponse
	s.newPayment(order, lang).mustSend(t, &response)
	return response.PaymentURL
}

// paymentResponse has the address of a payment's page.
type paymentResponse struct {
	PaymentURL string `json:"payment_url"`
}

// refusedPaymentPage makes the operator refuse a payment and returns the address of the page, which exists anyway.
func (s *merchantSite) refusedPaymentPage(t *testing.T, order, lang string) string {
	t.Helper()
	script := map[string]any{"key": order, "kind": "payment", "calls": []string{"POL0253"}}
	s.control(http.MethodPost, "script", script).mustSend(t, &map[string]any{})
	status, text := s.newPayment(order, lang).send(t)
	if status != http.StatusForbidden || !strings.Contains(text, "POL0253") {
		t.Fatalf("the payment was not refused: %d %s", status, text)
	}
	var pages []paymentResponse
	s.control(http.MethodGet, "transactions?key="+order, nil).mustSend(t, &pages)
	if len(pages) != 1 || pages[0].PaymentURL == "" {
		t.Fatalf("the operator has the pages %+v, want one", pages)
	}
	return pages[0].PaymentURL
}

// paymentBody returns the body of a payment.
func (s *merchantSite) paymentBody(order string) map[string]string {
	body := map[string]string{
		"currency": "XOF", "order_id": order, "amount": "12500", "reference": "Chez Awa & Fils", "state": "cart-42",
		"return_url": s.site.URL + "/return", "cancel_url": s.site.URL + "/cancel",
	}
	if s.notify != "" {
		body["notif_url"] = s.notify
	}
	return body
}

// paymentStatus returns the payment's status at the gateway.
func (s *merchantSite) paymentStatus(t *testing.T, order string) string {
	t.Helper()
	var response struct {
		Status string `json:"status"`
	}
	lookup := jsonRequest{
		http.MethodGet, s.gateway.BaseURL + "/mobilemoney/v1/getStatus/" + order, s.headers("en"), nil,
	}
	lookup.mustSend(t, &response)
	return response.Status
}

// testPIN is a PIN with a test number.
type testPIN struct {
	PIN       string    `json:"pin"`
	MSISDN    string    `json:"msisdn"`
	ExpiresAt time.Time `json:"expires_at"`
}

// issueTestPIN requests a PIN for a payment, or with "" for any payment.
func (s *merchantSite) issueTestPIN(t *testing.T, order string) testPIN {
	t.Helper()
	var p testPIN
	s.control(http.MethodPost, "tests", map[string]string{"order_id": order}).mustSend(t, &p)
	return p
}
