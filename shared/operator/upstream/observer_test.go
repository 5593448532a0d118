package upstream_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"mobilegateway/shared/circuit"
	"mobilegateway/shared/operator/upstream"
)

// observed has the evidence of the exchanges.
type observed struct {
	began    int
	evidence []circuit.Evidence
}

func (o *observed) ExchangeBegins(func())           { o.began++ }
func (o *observed) ExchangeEnds(e circuit.Evidence) { o.evidence = append(o.evidence, e) }

// brokenBody is a body that ends with an error.
type brokenBody struct{ err error }

func (b brokenBody) Read([]byte) (int, error) { return 0, b.err }
func (brokenBody) Close() error               { return nil }

// decision "circuit-breaker": what an exchange shows about the account.
func TestEvidence(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	long := strings.Repeat(" ", upstream.MaxResponseBytes+1)
	for name, c := range map[string]struct {
		status int
		body   string
		cut    error // of the body
		err    error // without a response
		want   circuit.Evidence
	}{
		"a success":        {status: 201, body: `{}`, want: circuit.Responded},
		"a redirect":       {status: 302, want: circuit.Responded},
		"garbage with 200": {status: 200, body: `<html>`, want: circuit.Responded},
		"a refusal":        {status: 403, body: `{"code":"PAYER_LIMIT"}`, want: circuit.None},
		"a refusal of the specification": {status: 403, body: `{"requestError":{"policyException":` +
			`{"messageId":"POL1000","text":"x","variables":[]}}}`, want: circuit.Responded},
		"an invalid request": {status: 400, body: `<html>`, want: circuit.Responded},
		"not found":          {status: 404, want: circuit.Responded},
		"a conflict":         {status: 409, want: circuit.Responded},
		"a rate limit":       {status: 429, want: circuit.None},
		"our credentials":    {status: 401, want: circuit.None},
		"500 with a code": {
			status: 500, body: `{"code":"INTERNAL_PROCESSING_ERROR"}`, want: circuit.Responded,
		},
		"500 with a number":        {status: 500, body: `{"fault":{"code":101503}}`, want: circuit.Responded},
		"500 of OAuth":             {status: 500, body: `{"error":"login_failed"}`, want: circuit.Responded},
		"503 of the specification": {status: 503, body: requestError, want: circuit.Responded},
		"503 of a load balancer": {
			status: 503, body: `<html>Service Unavailable</html>`, want: circuit.Failed,
		},
		"500 of an API gateway": {
			status: 500, body: `{"message":"Internal server error"}`, want: circuit.Failed,
		},
		"500 of a framework": {
			status: 500, body: `{"status":500,"error":"Internal Server Error"}`, want: circuit.Failed,
		},
		"502 without a body":          {status: 502, want: circuit.Failed},
		"502 with a long body":        {status: 502, body: long, want: circuit.Failed},
		"200 with a long body":        {status: 200, body: long, want: circuit.Responded},
		"a cut body":                  {status: 200, cut: io.ErrUnexpectedEOF, want: circuit.Failed},
		"a body that takes long":      {status: 200, cut: context.DeadlineExceeded, want: circuit.TimedOut},
		"a refused connection":        {err: refused, want: circuit.Failed},
		"a cut connection":            {err: io.EOF, want: circuit.Failed},
		"a response that is not HTTP": {err: errors.New("malformed HTTP response"), want: circuit.Failed},
		"our time is over":            {err: context.DeadlineExceeded, want: circuit.TimedOut},
		"we gave up":                  {err: context.Canceled, want: circuit.None},
	} {
		client := upstream.NewClient(transport(func(*http.Request) (*http.Response, error) {
			if c.err != nil {
				return nil, c.err
			}
			body := io.NopCloser(strings.NewReader(c.body))
			if c.cut != nil {
				body = brokenBody{c.cut}
			}
			return &http.Response{StatusCode: c.status, Body: body}, nil
		}))
		o := &observed{}
		request := upstream.Request{Method: "GET", URL: "http://127.0.0.1/"}
		x := client.Send(upstream.WithObserver(t.Context(), o), request)
		if o.began != 1 || !slices.Equal(o.evidence, []circuit.Evidence{c.want}) || x.Status != c.status {
			t.Errorf("%s: evidence %v of %d exchanges, want %v", name, o.evidence, o.began, c.want)
		}
	}
}

const requestError = `{"requestError":{"serviceException":{"messageId":"SVC0001","text":"x","variables":[]}}}`

// A request that cannot be made is our own fault, and shows nothing.
func TestRequestThatCannotBeMade(t *testing.T) {
	o := &observed{}
	request := upstream.Request{Method: "GET", URL: "http://%"}
	upstream.NewClient(nil).Send(upstream.WithObserver(t.Context(), o), request)
	if o.began != 0 || len(o.evidence) != 0 {
		t.Errorf("%d exchanges, evidence %v; want none", o.began, o.evidence)
	}
}
