package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mobilegateway/internal/local"
	"mobilegateway/internal/localtest"
)

// speed makes the 15 minutes of a PIN into 15 seconds.
const speed = 60

// merchantSite is a merchant with a site of its own, a gateway to pay through, and the operator's control port.
type merchantSite struct {
	gateway local.Info
	site    *httptest.Server
	notify  string // where the operator is to tell, where it is asked directly; "": the gateway sees to it
	orders  atomic.Int64
}

// newMerchantSite starts the gateway and the site. What the purchaser comes back to is first sent on to another host name, as
// many sites do: the page's policy must let that happen.
func newMerchantSite(t *testing.T) *merchantSite {
	t.Helper()
	s := &merchantSite{gateway: localtest.Start(t, localtest.Options{Speed: speed}).Info()}
	mux := http.NewServeMux()
	for _, place := range []string{"return", "cancel"} {
		mux.HandleFunc("GET /"+place, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.Host, "127.0.0.1") {
				http.Redirect(w, r, strings.Replace(s.site.URL, "127.0.0.1", "localhost", 1)+"/"+place, http.StatusFound)
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

// newOrderID is an order_id that is not used yet.
func (s *merchantSite) newOrderID() string {
	return fmt.Sprintf("%s_%d%03d", s.gateway.Merchant, time.Now().Unix(), s.orders.Add(1))
}

// exchange sends JSON and decodes the answer, which is a success.
func (s *merchantSite) exchange(t *testing.T, method, address string, headers map[string]string, body, response any) {
	t.Helper()
	status, raw := s.send(t, method, address, headers, body)
	if status/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, address, status, raw)
	}
	if err := json.Unmarshal(raw, response); err != nil {
		t.Fatal(err)
	}
}

func (s *merchantSite) send(t *testing.T, method, address string, headers map[string]string, body any) (int, []byte) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, raw
}

func (s *merchantSite) headers(lang string) map[string]string {
	return map[string]string{
		"Authorization": "Bearer " + s.gateway.AccessToken, "mno-name": "sandbox", "country-code": "CI", "channel": "web", "lang": lang,
	}
}

// createPayment begins a web payment and returns the address of its page.
func (s *merchantSite) createPayment(t *testing.T, order, lang string) string {
	t.Helper()
	var response paymentResponse
	s.exchange(t, http.MethodPost, s.gateway.BaseURL+"/mobilemoney/v1", s.headers(lang), s.paymentBody(order), &response)
	return response.PaymentURL
}

// paymentResponse is what tells where a payment's page is.
type paymentResponse struct {
	PaymentURL string `json:"payment_url"`
}

// refusedPaymentPage has the operator refuse a payment, and returns the address of the page that it has all the same.
func (s *merchantSite) refusedPaymentPage(t *testing.T, order, lang string) string {
	t.Helper()
	control, script := s.gateway.SandboxURL+"/sandbox/v1/", map[string]any{}
	s.exchange(t, http.MethodPost, control+"script", nil, map[string]any{"key": order, "kind": "payment", "calls": []string{"POL0253"}}, &script)
	status, raw := s.send(t, http.MethodPost, s.gateway.BaseURL+"/mobilemoney/v1", s.headers(lang), s.paymentBody(order))
	if status != http.StatusForbidden || !bytes.Contains(raw, []byte("POL0253")) {
		t.Fatalf("not refused: %d %s", status, raw)
	}
	var pages []paymentResponse
	s.exchange(t, http.MethodGet, control+"transactions?key="+order, nil, nil, &pages)
	if len(pages) != 1 || pages[0].PaymentURL == "" {
		t.Fatalf("the operator's pages: %+v", pages)
	}
	return pages[0].PaymentURL
}

// paymentBody is the body of a payment.
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

// paymentStatus is what the gateway knows of a payment.
func (s *merchantSite) paymentStatus(t *testing.T, order string) string {
	t.Helper()
	var response struct {
		Status string `json:"status"`
	}
	s.exchange(t, http.MethodGet, s.gateway.BaseURL+"/mobilemoney/v1/getStatus/"+order, s.headers("en"), nil, &response)
	return response.Status
}

// testPIN is a PIN and a dummy number.
type testPIN struct {
	PIN       string    `json:"pin"`
	MSISDN    string    `json:"msisdn"`
	ExpiresAt time.Time `json:"expires_at"`
}

// issueTestPIN asks the operator for a PIN for a payment, or with "" for one that is good for any.
func (s *merchantSite) issueTestPIN(t *testing.T, order string) testPIN {
	t.Helper()
	var p testPIN
	s.exchange(t, http.MethodPost, s.gateway.SandboxURL+"/sandbox/v1/tests", nil, map[string]string{"order_id": order}, &p)
	return p
}
