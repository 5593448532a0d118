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

// shop is a merchant with a site of its own, a gateway to pay through, and the operator's control port.
type shop struct {
	gateway local.Info
	site    *httptest.Server
	notify  string // where the operator is to tell, where it is asked directly; "": the gateway sees to it
	orders  atomic.Int64
}

// newShop starts the gateway and the site. What the purchaser comes back to is first sent on to another host name, as
// many sites do: the page's policy must let that happen.
func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{gateway: localtest.Start(t, localtest.Options{Speed: speed}).Info()}
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

// order is an order_id that is not used yet.
func (s *shop) order() string {
	return fmt.Sprintf("%s_%d%03d", s.gateway.Merchant, time.Now().Unix(), s.orders.Add(1))
}

// exchange sends JSON and decodes the answer.
func (s *shop) exchange(t *testing.T, method, address string, headers map[string]string, body, answer any) {
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
	if err != nil || response.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s %v", method, address, response.StatusCode, raw, err)
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		t.Fatal(err)
	}
}

func (s *shop) headers(lang string) map[string]string {
	return map[string]string{
		"Authorization": "Bearer " + s.gateway.AccessToken, "mno-name": "sandbox", "country-code": "CI", "channel": "web", "lang": lang,
	}
}

// pay begins a web payment and returns the address of its page.
func (s *shop) pay(t *testing.T, order, lang string) string {
	t.Helper()
	var answer struct {
		PaymentURL string `json:"payment_url"`
	}
	body := map[string]string{
		"currency": "XOF", "order_id": order, "amount": "12500", "reference": "Chez Awa & Fils", "state": "cart-42",
		"return_url": s.site.URL + "/return", "cancel_url": s.site.URL + "/cancel",
	}
	if s.notify != "" {
		body["notif_url"] = s.notify
	}
	s.exchange(t, http.MethodPost, s.gateway.BaseURL+"/mobilemoney/v1", s.headers(lang), body, &answer)
	return answer.PaymentURL
}

// status is what the gateway knows of a payment.
func (s *shop) status(t *testing.T, order string) string {
	t.Helper()
	var answer struct {
		Status string `json:"status"`
	}
	s.exchange(t, http.MethodGet, s.gateway.BaseURL+"/mobilemoney/v1/getStatus/"+order, s.headers("en"), nil, &answer)
	return answer.Status
}

// issued is a PIN and a dummy number.
type issued struct {
	PIN       string    `json:"pin"`
	MSISDN    string    `json:"msisdn"`
	ExpiresAt time.Time `json:"expires_at"`
}

// pin asks the operator for a PIN for a payment.
func (s *shop) pin(t *testing.T, order string) issued {
	t.Helper()
	var p issued
	s.exchange(t, http.MethodPost, s.gateway.SandboxURL+"/sandbox/v1/tests", nil, map[string]string{"order_id": order}, &p)
	return p
}
