package outside

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
)

// A trace of the request sees what the transport would report.
func TestExchangeResult(t *testing.T) {
	cases := map[Failure]struct{ sent, reused, started, complete bool }{
		NoFailure:         {sent: true, started: true, complete: true},
		ConnectionRefused: {},
		ConnectionReset:   {sent: true},
		StaleConnection:   {sent: true, reused: true},
		NoResponse:        {sent: true},
		TruncatedBody:     {sent: true, started: true},
	}
	for failure, want := range cases {
		got := want
		got.sent, got.reused, got.started, got.complete = false, false, false, false
		trace := &httptrace.ClientTrace{
			GetConn:              func(string) { got.sent = false },
			GotConn:              func(info httptrace.GotConnInfo) { got.sent, got.reused = true, info.Reused },
			GotFirstResponseByte: func() { got.started = true },
		}
		ctx := httptrace.WithClientTrace(t.Context(), trace)
		request := httptest.NewRequest(http.MethodGet, "https://operator.example.com/", nil).WithContext(ctx)
		e := Exchange{Status: 200, Body: []byte("body"), Failure: failure}
		e.Connect(request)
		response, err := e.Result(request)
		if err == nil {
			_, err = io.ReadAll(response.Body)
		}
		got.complete = err == nil
		if got != want {
			t.Errorf("failure %d: %+v, want %+v", failure, got, want)
		}
	}
}

func TestOutageSparesCalls(t *testing.T) {
	o := Outage{Fault: HangBefore, SparedOf: 3}
	for call, want := range []Fault{HangBefore, HangBefore, NoFault, HangBefore, HangBefore, NoFault} {
		if got := o.next(); got != want {
			t.Errorf("call %d: %q, want %q", call, got, want)
		}
	}
}
