//go:build linux

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"mobilegateway/e2e/harness"
	"mobilegateway/shared/ledger"
)

const (
	// orderInterval is the time between two orders.
	orderInterval = 180 * time.Millisecond
	// maxOpenOrders bounds the orders without a decisive response. More orders wait.
	maxOpenOrders = 120
	// requestTimeout is how long a merchant waits for a response: longer than the API itself.
	requestTimeout = 35 * time.Second
	// firstBackoff and maxBackoff bound a merchant's wait before a retry without Retry-After. It doubles.
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 8 * time.Second
	// payerTimeout bounds the payer's attempts on the payment page.
	payerTimeout = 30 * time.Second
)

// load sends orders as merchants' clients do: in parallel, and with retries until the response is decisive.
type load struct {
	gateway *gateway
	client  *http.Client
	group   sync.WaitGroup
	open    chan struct{}

	mu       sync.Mutex
	orders   []*order
	statuses map[int]int // of all responses
}

func newLoad(g *gateway) *load {
	return &load{gateway: g, open: make(chan struct{}, maxOpenOrders), statuses: map[int]int{}, client: &http.Client{
		Timeout:       requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// run begins orders until duration has passed. Retries end when ctx ends.
func (l *load) run(ctx context.Context, seed uint64, duration time.Duration) {
	random, ticker := newRandom(seed, "orders"), time.NewTicker(orderInterval)
	defer ticker.Stop()
	for began := time.Now(); time.Since(began) < duration; <-ticker.C {
		o := l.gateway.drawOrder(random, len(l.orders)+1, duration-time.Since(began))
		l.open <- struct{}{}
		l.mu.Lock()
		l.orders = append(l.orders, o)
		l.mu.Unlock()
		l.group.Go(func() {
			l.place(ctx, o)
			<-l.open
			l.mu.Lock()
			o.finished = true
			l.mu.Unlock()
		})
	}
}

// place sends an order until the response is decisive, then does what the payer does.
func (l *load) place(ctx context.Context, o *order) {
	pause := firstBackoff
	for {
		got := l.send(ctx, o)
		l.mu.Lock()
		o.response, o.decided = got, got.decisive()
		o.requests++
		l.statuses[got.status]++
		l.mu.Unlock()
		if o.decided || o.impatient {
			break
		}
		delay := pause
		if seconds, err := strconv.Atoi(got.header.Get("Retry-After")); err == nil {
			delay = min(time.Duration(seconds)*time.Second, maxBackoff)
		}
		if !wait(ctx, delay) {
			return
		}
		pause = min(2*pause, maxBackoff)
	}
	if o.response.status == http.StatusCreated && o.channel == "web" && o.kind == ledger.Payment && o.payer != "" {
		err := harness.Poll(ctx, payerTimeout, func() error { return l.usePaymentPage(ctx, o) })
		l.mu.Lock()
		o.payerDone = err == nil
		l.mu.Unlock()
	}
}

// send sends the request once.
func (l *load) send(ctx context.Context, o *order) response {
	request, err := o.newRequest(l.gateway.BaseURL)
	if err != nil {
		return response{body: err.Error()}
	}
	reply, err := l.client.Do(request.WithContext(ctx))
	if err != nil {
		return response{body: err.Error()}
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return response{body: err.Error()}
	}
	return response{reply.StatusCode, reply.Header, string(text), reply.Header.Get("Location")}
}

// decisive reports whether a merchant knows the result of its order: it succeeded, or a retry cannot help.
func (r response) decisive() bool {
	switch r.status {
	case 0, http.StatusTooManyRequests:
		return false
	case http.StatusConflict:
		return r.header.Get("Retry-After") == ""
	}
	return r.status < http.StatusInternalServerError
}

// usePaymentPage confirms or cancels a payment as its payer does.
func (l *load) usePaymentPage(ctx context.Context, o *order) error {
	var page struct {
		PaymentURL string `json:"payment_url"`
	}
	if err := json.Unmarshal([]byte(o.response.body), &page); err != nil {
		return err
	}
	text, _, err := harness.Call(ctx, http.MethodPost, l.gateway.SandboxURL+"/sandbox/v1/tests",
		fmt.Sprintf(`{"msisdn":%q}`, o.msisdn()), nil)
	if err != nil {
		return err
	}
	var issued struct {
		PIN string `json:"pin"`
	}
	if err := json.Unmarshal(text, &issued); err != nil {
		return err
	}
	form := url.Values{"msisdn": {o.msisdn()}, "pin": {issued.PIN}, "action": {o.payer}}
	_, _, err = harness.Call(ctx, http.MethodPost, page.PaymentURL, form.Encode(),
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	return err
}

// counts returns the orders so far, those without a decisive response, and the responses by status.
func (l *load) counts() (orders, open int, statuses string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.orders {
		if !o.decided && !o.impatient {
			open++
		}
	}
	return len(l.orders), open, fmt.Sprint(l.statuses)
}
