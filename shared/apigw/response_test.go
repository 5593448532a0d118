package apigw_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
)

func TestHandlerErrorIsRendered(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.1:443: refused, token gwl_secret")
	s := newGatewayFixture(t, apigw.Config{}, func(context.Context, *apigw.Request) (apigw.Response, error) {
		failure := &fault.Fault{Kind: fault.OperatorUnavailable, Cause: cause}
		return apigw.Response{Status: 201, Body: []byte("ignored")}, failure
	})
	rendered := s.invoke(readGoldenEvent(t, "charge-rest"))
	if rendered.StatusCode != 503 || rendered.Headers["Retry-After"] != "5" {
		t.Errorf("status %d, Retry-After %q; want 503 and 5", rendered.StatusCode, rendered.Headers["Retry-After"])
	}
	if strings.Contains(rendered.Body, "ignored") {
		t.Error("the handler's response was sent in spite of its error")
	}
	s.wantLine(map[string]any{
		"ErrorID": "SVC0001", "Status": 503.0, "Errors": 1.0, "InternalErrors": nil,
		"Cause": "operator down: *errors.errorString",
	})
}

// zeroValue is the zero value of a type, hidden from the compiler's warnings.
func zeroValue[T any]() (zero T) { return zero }

func TestPanicIsLoggedWithoutItsValue(t *testing.T) {
	tests := []struct {
		name   string
		handle func()
		cause  string
	}{
		{"text", func() { panic("canary") }, "panic string in "},
		{"error", func() { panic(errors.New("canary")) }, "panic *errors.errorString in "},
		{"nil map", func() { zeroValue[map[string]int]()["canary"] = 1 }, "panic "},
		{"nil pointer", func() { zeroValue[*apigw.Request]().BaseURL = "canary" }, "panic runtime.errorString in "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newGatewayFixture(t, apigw.Config{}, func(context.Context, *apigw.Request) (apigw.Response, error) {
				test.handle()
				return apigw.Response{}, nil
			})
			rendered := s.invoke(readGoldenEvent(t, "charge-rest"))
			if rendered.StatusCode != 500 || strings.Contains(rendered.Body+s.log.String(), "canary") {
				t.Errorf("want 500 without the value: response %+v\nlog %s", rendered, s.log.String())
			}
			s.wantLine(map[string]any{"InternalErrors": 1.0})
			cause, _ := s.readLogLine()["Cause"].(string)
			if !strings.HasPrefix(cause, test.cause) || !strings.Contains(cause, "apigw_test.TestPanic") {
				t.Errorf("cause %q does not name type and place", cause)
			}
			if again := s.invoke(readGoldenEvent(t, "charge-rest")); again.StatusCode != 500 {
				t.Errorf("status after a second panic: %d", again.StatusCode)
			}
		})
	}
}

func TestMalformedEventIsAnInternalError(t *testing.T) {
	for name, payload := range map[string]string{
		"nothing": "", "not JSON": "canary", "array": "[]", "body a number": `{"body":482913}`,
		"headers a text": `{"headers":"canary"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newGatewayFixture(t, apigw.Config{}, handleCreated)
			rendered := s.invoke([]byte(payload))
			if rendered.StatusCode != 500 || strings.Contains(s.log.String(), "canary") {
				t.Errorf("want 500 without the value: response %+v, log %s", rendered, s.log.String())
			}
		})
	}
}

func TestHandlerWithoutStatusIsAnInternalError(t *testing.T) {
	for _, status := range []int{0, 100, 600} {
		s := newGatewayFixture(t, apigw.Config{}, func(context.Context, *apigw.Request) (apigw.Response, error) {
			return apigw.Response{Status: status}, nil
		})
		if rendered := s.invoke(readGoldenEvent(t, "charge-rest")); rendered.StatusCode != 500 {
			t.Errorf("status %d of the handler became %d, want 500", status, rendered.StatusCode)
		}
	}
}

func TestContentType(t *testing.T) {
	s := newGatewayFixture(t, apigw.Config{}, handleCreated)
	rendered := s.invoke(readGoldenEvent(t, "charge-rest"))
	want := map[string]string{"Content-Type": "application/json", "Location": "https://api.example.test/1"}
	if diff := cmp.Diff(want, rendered.Headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	s = newGatewayFixture(t, apigw.Config{}, func(context.Context, *apigw.Request) (apigw.Response, error) {
		return apigw.Response{Status: 200, Header: map[string]string{"Content-Type": "text/plain"}}, nil
	})
	if rendered = s.invoke(readGoldenEvent(t, "charge-rest")); rendered.Headers["Content-Type"] != "text/plain" {
		t.Errorf("the handler's Content-Type is replaced: %v", rendered.Headers)
	}
}

func TestLogLine(t *testing.T) {
	setMerchant := func(_ context.Context, r *apigw.Request) (apigw.Response, error) {
		r.LogLine.SetMerchant("DemoShop")
		return apigw.Response{Status: 201}, nil
	}
	s := newGatewayFixture(t, apigw.Config{StackName: "gateway-dev"}, setMerchant)
	for _, cold := range []any{true, nil, nil} {
		s.invoke(readGoldenEvent(t, "charge-rest"))
		s.wantLine(map[string]any{
			"ColdStart": cold, "Stack": "gateway-dev", "Operation": "charge", "Merchant": "DemoShop",
			"DurationMillis": 5.0, "Status": 201.0, "Errors": 0.0,
		})
	}
}

// The line contains only the parts of a request that the handler sets.
func TestLogLineOmitsRequestContent(t *testing.T) {
	s := newGatewayFixture(t, apigw.Config{}, handleCreated)
	for _, name := range []string{"charge-rest", "pay-sam", "sms-rest"} {
		s.invoke(readGoldenEvent(t, name))
		for _, canary := range []string{
			"ACCESS_TOKEN", "GW_TOKEN", "GW_ALIAS", "482913", "0701020304", "REF-0001", "basket", "203.0.113.7",
		} {
			if strings.Contains(s.log.String(), canary) {
				t.Errorf("%s: %q in %s", name, canary, s.log.String())
			}
		}
	}
}

func TestDeadline(t *testing.T) {
	s := newGatewayFixture(t, apigw.Config{}, handleCreated)
	s.invokeWithContext(context.Background(), readGoldenEvent(t, "charge-rest"))
	if !s.lastRequest.Deadline.IsZero() {
		t.Errorf("deadline %v without one", s.lastRequest.Deadline)
	}
	if s.lastRequest.StartedAt.IsZero() {
		t.Error("the request has no start")
	}
	deadline := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	s.invokeWithContext(ctx, readGoldenEvent(t, "charge-rest"))
	if !s.lastRequest.Deadline.Equal(deadline) {
		t.Errorf("deadline %v, want %v", s.lastRequest.Deadline, deadline)
	}
}

func TestWithoutLog(t *testing.T) {
	route := apigw.Route{Method: "POST", Resource: payResource, Handle: handleCreated}
	gateway := apigw.New(apigw.Config{Now: time.Now}, route)
	rendered, err := gateway.Invoke(t.Context(), readGoldenEvent(t, "pay-rest"))
	if err != nil || !bytes.Contains(rendered, []byte(`"statusCode":201`)) {
		t.Errorf("response %s, %v; want 201", rendered, err)
	}
}
