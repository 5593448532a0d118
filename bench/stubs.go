package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

func delayCalls(delay time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(delay)
		next.ServeHTTP(w, r)
	})
}

// meter passes requests on. It counts the calls by operation and adds up the time until they have their response. A GET
// is not a call: a function opens its connections with it. meter is safe for concurrent use.
type meter struct {
	next http.Handler

	mu     sync.Mutex
	calls  map[string]int
	waited time.Duration
}

// ServeHTTP implements http.Handler.
func (m *meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	m.next.ServeHTTP(w, r)
	if r.Method == http.MethodGet {
		return
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[operation]++
	m.waited += time.Since(started)
}

// drain returns the calls since the last drain, by operation ("" without X-Amz-Target), and how long they took.
func (m *meter) drain() (calls map[string]int, waited time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls, waited = m.calls, m.waited
	m.calls, m.waited = map[string]int{}, 0
	return calls, waited
}

// serveOperator is an operator to which every charge, payment and SMS succeeds, also over the platform of MTN.
func serveOperator(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has gone
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/mtn/collection/token/":
		_, _ = io.WriteString(w, `{"access_token":"token","token_type":"access_token","expires_in":3600}`)
		return
	case "/mtn/collection/v1_0/requesttopay":
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, successResponse(r, body))
}

// successResponse is the operator's response as the specification writes it.
func successResponse(r *http.Request, body []byte) string {
	switch {
	case strings.HasPrefix(r.URL.Path, "/payment/"):
		return `{"amountTransaction":{"serverReferenceCode":"operator-1","transactionOperationStatus":"Charged"}}`
	case strings.HasPrefix(r.URL.Path, "/smsmessaging/"):
		return `{"outboundSMSMessageRequest":{"resourceURL":"http://operator/requests/1/deliveryInfos"}}`
	case r.Header.Get("channel") == "web":
		return `{"status":201,"message":"OK","pay_token":"token","payment_url":"http://127.0.0.1/page",` +
			`"notif_token":"notification","state":"state"}`
	}
	var order struct {
		ID string `json:"order_id"`
	}
	_ = json.Unmarshal(body, &order) // the function rejects a response with an empty id
	return fmt.Sprintf(`{"order-id":%q,"status":"pending","Transaction-id":"operator-1"}`, order.ID)
}
