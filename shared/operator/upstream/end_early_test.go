package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"mobilegateway/shared/circuit"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
)

// ender ends an exchange early. It gets the end of the exchange by began.
type ender struct {
	observed
	began chan func()
}

func (e *ender) ExchangeBegins(end func()) { e.began <- end }

// decision "circuit-breaker": an exchange that is ended early is a time-out. Its outcome is unknown.
func TestExchangeThatIsEndedEarly(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/in-the-body" {
			_, _ = rw.Write([]byte(`{"half":`))
			_ = http.NewResponseController(rw).Flush()
		}
		arrived <- struct{}{}
		<-release
	}))
	defer server.Close()
	defer close(release)
	client := upstream.NewClient(nil)
	for _, path := range []string{"/before-the-response", "/in-the-body"} {
		o := &ender{began: make(chan func(), 1)}
		go func() {
			<-arrived
			(<-o.began)()
		}()
		request := upstream.Request{Method: "POST", URL: server.URL + path, IsTransaction: true}
		x := client.Send(upstream.WithObserver(t.Context(), o), request)
		if !errors.Is(x.Err, context.DeadlineExceeded) || errors.Is(x.Err, context.Canceled) || x.ConnectionLost {
			t.Errorf("%s: %v, connection lost %v; want a time-out", path, x.Err, x.ConnectionLost)
		}
		if result, _ := x.WithoutResponse(); result.Outcome != operator.Unknown {
			t.Errorf("%s: outcome %v, want unknown", path, result.Outcome)
		}
		if !slices.Equal(o.evidence, []circuit.Evidence{circuit.TimedOut}) {
			t.Errorf("%s: evidence %v, want a time-out", path, o.evidence)
		}
	}
}

// Before the request may have been sent, and after the response, the end has no effect.
func TestEndWithoutEffect(t *testing.T) {
	isSent := false
	o := &ender{began: make(chan func(), 1)}
	client := upstream.NewClient(transport(func(r *http.Request) (*http.Response, error) {
		end := <-o.began
		end()
		isSent = r.Context().Err() == nil
		o.began <- end
		return &http.Response{StatusCode: 201, Body: http.NoBody}, nil
	}))
	request := upstream.Request{Method: "POST", URL: "http://127.0.0.1/", IsTransaction: true}
	x := client.Send(upstream.WithObserver(t.Context(), o), request)
	(<-o.began)()
	if !isSent || x.Err != nil || x.Status != 201 {
		t.Errorf("sent %v, status %d, %v; want the response", isSent, x.Status, x.Err)
	}
}

// Only a transaction can be ended: not a lookup, a preparation or a token exchange.
func TestOnlyTransactionsEndEarly(t *testing.T) {
	for _, isTransaction := range []bool{true, false} {
		o := &ender{began: make(chan func(), 1)}
		client := upstream.NewClient(transport(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 201, Body: http.NoBody}, nil
		}))
		request := upstream.Request{Method: "POST", URL: "http://127.0.0.1/", IsTransaction: isTransaction}
		client.Send(upstream.WithObserver(t.Context(), o), request)
		if end := <-o.began; (end != nil) != isTransaction {
			t.Errorf("transaction %v: can be ended %v", isTransaction, end != nil)
		}
	}
}
