package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"mobilegateway/proof/simulate/outside"
)

// Serve passes a request to the model that it is for.
type Serve func(request *http.Request, body []byte) outside.Exchange

// network sends the HTTP requests of one instance.
type network struct {
	gate     *Gate
	instance *Instance
	serve    Serve
	// sendsLate is true if a request that was about to be sent is sent also after a freeze that outlasted its context.
	sendsLate bool
}

// RoundTrip implements http.RoundTripper: it parks, lets the model serve the request, and waits for the response.
func (n network) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := ReadBody(request)
	if err != nil {
		return nil, err
	}
	before, call := request.Context().Err(), CallOf(request)
	if call == "" {
		n.gate.Fail("%s sends a request to the unknown path %s", n.instance.Function, request.URL)
	}
	n.gate.Pass(n.instance, call)
	after := request.Context().Err()
	if before != nil || after != nil && !n.sendsLate {
		return nil, cmp.Or(before, after)
	}
	n.gate.Observer.Requested(n.instance.Function, request, body)
	response := n.serve(request, body)
	if n.sendsLate {
		n.gate.Observer.Exchanged(n.instance, response)
	}
	response.Connect(request)
	if wait := DelayOf(response); wait > 0 {
		n.wait(request.Context(), wait)
	}
	return response.Result(request)
}

// wait waits for a response. Result knows whether the context has ended.
func (n network) wait(ctx context.Context, wait time.Duration) {
	began := time.Now()
	_ = n.instance.Sleep(ctx, wait)
	if n.sendsLate && errors.Is(ctx.Err(), context.Canceled) {
		n.gate.Logf("%s: ends its call at an operator early", n.instance.Name)
		n.gate.Observer.EndedEarly(n.instance, time.Since(began))
	}
}

// ReadBody reads the body of a request, nil for none.
func ReadBody(request *http.Request) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	defer func() { _ = request.Body.Close() }()
	return io.ReadAll(request.Body)
}

// DelayOf is how long the sender waits for a response, at most.
func DelayOf(response outside.Exchange) time.Duration {
	if response.Failure == outside.NoResponse {
		return time.Hour
	}
	return response.Delay
}

// The calls of requests that are made again and again for one transaction.
const (
	CallLookup       = "http getStatus"
	CallNotification = "http notification"
)

// routes are the parts of operators' paths that name a request, and the names of the calls. The first that fits counts.
var routes = []struct{ part, call string }{
	{"/transactions/amount", "http charge"}, {"/requests", "http sms"}, {"/getStatus", CallLookup},
	{"/mobilemoney/v1", "http payment"}, {"/requesttopay/", CallLookup}, {"/requesttopay", "http payment"},
	{"token", "http token"}, {"/v2/deposits/", CallLookup}, {"/v2/deposits", "http payment"},
	{"/checkout/sessions/", CallLookup}, {"/checkout/sessions", "http payment"},
	{"/webpayment", "http payment"}, {"/transactionstatus", CallLookup}, {"/mp/init", "http prepare"},
	{"/mp/paymentstatus", CallLookup}, {"/mp/pay", "http payment"},
	{"/generate_payment", "http payment"}, {"/verify_payment/", CallLookup},
}

// CallOf names a request without its ids; "" for one that is not a notification and has no operator's path.
func CallOf(request *http.Request) string {
	if request.Header.Get("webhook-id") != "" {
		return CallNotification
	}
	for _, route := range routes {
		if strings.Contains(request.URL.Path, route.part) {
			return route.call
		}
	}
	return ""
}

// Describe describes a response for a story.
func Describe(response outside.Exchange) string {
	if response.Failure != outside.NoFailure {
		return fmt.Sprintf("no response (%d)", response.Failure)
	}
	return fmt.Sprint(response.Status)
}
