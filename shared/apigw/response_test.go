package apigw_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
)

func TestHandlerErrorIsRendered(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.1:443: refused, token gwl_secret")
	s := newGatewayFixture(apigw.Config{}, func(context.Context, *apigw.Request) (apigw.Response, error) {
		return apigw.Response{Status: 201, Body: []byte("ignored")}, &fault.Fault{Kind: fault.OperatorUnavailable, Cause: cause}
	})
	rendered := s.invoke(t, readGoldenEvent(t, "charge-rest"))
	if rendered.StatusCode != 503 || rendered.Headers["Retry-After"] != "5" || strings.Contains(rendered.Body, "ignored") {
		t.Errorf("answer %+v", rendered)
	}
	line := s.readLogLine(t)
	if line["ErrorID"] != "SVC0001" || line["Status"] != float64(503) || line["Errors"] != float64(1) || line["InternalErrors"] != nil {
		t.Errorf("line %v", line)
	}
	if got := line["Cause"]; got != "operator down: dial tcp 10.0.0.1:443: refused, token ***" {
		t.Errorf("cause %q", got)
	}
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
		{"nil pointer", func() { zeroValue[*apigw.Request]().ID = "canary" }, "panic runtime.errorString in "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newGatewayFixture(apigw.Config{}, func(context.Context, *apigw.Request) (apigw.Response, error) {
				test.handle()
				return apigw.Response{}, nil
			})
			rendered := s.invoke(t, readGoldenEvent(t, "charge-rest"))
			if rendered.StatusCode != 500 || strings.Contains(rendered.Body, "canary") || strings.Contains(s.log.String(), "canary") {
				t.Errorf("answer %+v\nlog %s", rendered, s.log.String())
			}
			if s.readLogLine(t)["InternalErrors"] != float64(1) {
				t.Error("it is not counted as an internal error")
			}
			cause, _ := s.readLogLine(t)["Cause"].(string)
			if !strings.HasPrefix(cause, "internal: "+test.cause) || !strings.Contains(cause, "apigw_test.TestPanic") {
				t.Errorf("cause %q", cause)
			}
			if again := s.invoke(t, readGoldenEvent(t, "charge-rest")); again.StatusCode != 500 {
				t.Errorf("the next answer is %+v", again)
			}
		})
	}
}

func TestMalformedEventIsAnInternalError(t *testing.T) {
	for name, payload := range map[string]string{
		"nothing": "", "not JSON": "canary", "array": "[]", "body a number": `{"body":482913}`, "headers a text": `{"headers":"canary"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newGatewayFixture(apigw.Config{}, handleCreated)
			rendered := s.invoke(t, []byte(payload))
			if rendered.StatusCode != 500 || strings.Contains(s.log.String(), "canary") {
				t.Errorf("answer %+v, log %s", rendered, s.log.String())
			}
		})
	}
}

func TestHandlerWithoutStatusIsAnInternalError(t *testing.T) {
	for _, status := range []int{0, 100, 600} {
		s := newGatewayFixture(apigw.Config{}, func(context.Context, *apigw.Request) (apigw.Response, error) {
			return apigw.Response{Status: status}, nil
		})
		if rendered := s.invoke(t, readGoldenEvent(t, "charge-rest")); rendered.StatusCode != 500 {
			t.Errorf("status %d is answered %d", status, rendered.StatusCode)
		}
	}
}

func TestContentType(t *testing.T) {
	s := newGatewayFixture(apigw.Config{}, handleCreated)
	rendered := s.invoke(t, readGoldenEvent(t, "charge-rest"))
	if rendered.Headers["Content-Type"] != "application/json" || rendered.Headers["Location"] != "https://api.example.test/1" {
		t.Errorf("headers %v", rendered.Headers)
	}
	s = newGatewayFixture(apigw.Config{}, func(context.Context, *apigw.Request) (apigw.Response, error) {
		return apigw.Response{Status: 200, Header: map[string]string{"Content-Type": "text/plain"}}, nil
	})
	if rendered = s.invoke(t, readGoldenEvent(t, "charge-rest")); rendered.Headers["Content-Type"] != "text/plain" {
		t.Errorf("headers %v", rendered.Headers)
	}
}

func TestLogLine(t *testing.T) {
	s := newGatewayFixture(apigw.Config{StackName: "gateway-dev"}, func(_ context.Context, r *apigw.Request) (apigw.Response, error) {
		r.LogLine.SetMerchant("DemoShop")
		return apigw.Response{Status: 201}, nil
	})
	for _, cold := range []any{true, nil, nil} {
		s.invoke(t, readGoldenEvent(t, "charge-rest"))
		line := s.readLogLine(t)
		if line["ColdStart"] != cold || line["Stack"] != "gateway-dev" || line["Operation"] != "charge" || line["Merchant"] != "DemoShop" {
			t.Errorf("line %v", line)
		}
		if line["DurationMillis"] != float64(5) || line["Status"] != float64(201) || line["Errors"] != float64(0) {
			t.Errorf("line %v", line)
		}
	}
}

// Nothing of a request stands in the line but what a handler sets.
func TestLogLineOmitsRequestContent(t *testing.T) {
	s := newGatewayFixture(apigw.Config{}, handleCreated)
	for _, name := range []string{"charge-rest", "pay-sam", "sms-rest"} {
		s.invoke(t, readGoldenEvent(t, name))
		for _, canary := range []string{"ACCESS_TOKEN", "GW_TOKEN", "GW_ALIAS", "482913", "0701020304", "REF-0001", "basket", "203.0.113.7"} {
			if strings.Contains(s.log.String(), canary) {
				t.Errorf("%s: %q in %s", name, canary, s.log.String())
			}
		}
	}
}

func TestDeadline(t *testing.T) {
	s := newGatewayFixture(apigw.Config{}, handleCreated)
	s.invokeWithContext(t, context.Background(), readGoldenEvent(t, "charge-rest"))
	if !s.lastRequest.Deadline.IsZero() {
		t.Errorf("deadline %v without one", s.lastRequest.Deadline)
	}
	deadline := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	s.invokeWithContext(t, ctx, readGoldenEvent(t, "charge-rest"))
	if !s.lastRequest.Deadline.Equal(deadline) {
		t.Errorf("deadline %v, want %v", s.lastRequest.Deadline, deadline)
	}
}

func TestWithoutLog(t *testing.T) {
	gateway := apigw.New(apigw.Config{Now: time.Now}, apigw.Route{Method: "POST", Resource: payResource, Handle: handleCreated})
	rendered, err := gateway.Invoke(t.Context(), readGoldenEvent(t, "pay-rest"))
	if err != nil || !bytes.Contains(rendered, []byte(`"statusCode":201`)) {
		t.Errorf("answer %s, %v", rendered, err)
	}
}
