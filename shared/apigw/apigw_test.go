package apigw_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/apigw"
)

const (
	chargeResource = "/payment/v1/{endUserId}/transactions/amount"
	payResource    = "/mobilemoney/v1"
	smsResource    = "/smsmessaging/v1/outbound/{senderAddress}/requests"
)

// gatewayFixture is a gateway with its log, over one handler for all three operations.
type gatewayFixture struct {
	t            testing.TB
	gateway      *apigw.Gateway
	log          bytes.Buffer
	lastRequest  *apigw.Request // the last request of a handler
	lastResource string         // the resource of that handler
}

type handler = func(ctx context.Context, r *apigw.Request) (apigw.Response, error)

func newGatewayFixture(t testing.TB, config apigw.Config, handle handler) *gatewayFixture {
	s := &gatewayFixture{t: t}
	clock := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	config.Now = func() time.Time {
		clock = clock.Add(5 * time.Millisecond)
		return clock
	}
	config.Operation = "charge"
	config.Log = &s.log
	var routes []apigw.Route
	for _, resource := range []string{chargeResource, payResource, smsResource} {
		recordAndHandle := func(ctx context.Context, r *apigw.Request) (apigw.Response, error) {
			s.lastRequest, s.lastResource = r, resource
			return handle(ctx, r)
		}
		routes = append(routes, apigw.Route{Method: "POST", Resource: resource, Handle: recordAndHandle})
	}
	s.gateway = apigw.New(config, routes...)
	return s
}

func handleCreated(context.Context, *apigw.Request) (apigw.Response, error) {
	header := map[string]string{"Location": "https://api.example.test/1"}
	return apigw.Response{Status: 201, Header: header, Body: []byte(`{"state":"<&>"}`)}, nil
}

// proxyResponse is a response as API Gateway reads it.
type proxyResponse struct {
	StatusCode      int               `json:"statusCode"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

func (s *gatewayFixture) invoke(payload []byte) proxyResponse {
	s.t.Helper()
	return s.invokeWithContext(s.t.Context(), payload)
}

// invokeChanged invokes with a golden event after one change.
func (s *gatewayFixture) invokeChanged(name string, change func(event map[string]any)) proxyResponse {
	s.t.Helper()
	var event map[string]any
	if err := json.Unmarshal(readGoldenEvent(s.t, name), &event); err != nil {
		s.t.Fatal(err)
	}
	change(event)
	payload, err := json.Marshal(event)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.invoke(payload)
}

func (s *gatewayFixture) invokeWithContext(ctx context.Context, payload []byte) proxyResponse {
	s.t.Helper()
	s.log.Reset()
	rendered, err := s.gateway.Invoke(ctx, payload)
	if err != nil {
		s.t.Fatalf("Invoke returned the error %v", err)
	}
	var decoded proxyResponse
	if err := json.Unmarshal(rendered, &decoded); err != nil {
		s.t.Fatalf("response %s: %v", rendered, err)
	}
	return decoded
}

// wantLine requires fields of the one telemetry line of the last invocation.
func (s *gatewayFixture) wantLine(want map[string]any) {
	s.t.Helper()
	line, got := s.readLogLine(), map[string]any{}
	for name := range want {
		got[name] = line[name]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("fields of the telemetry line (-want +got):\n%s", diff)
	}
}

func (s *gatewayFixture) readLogLine() map[string]any {
	s.t.Helper()
	var decoded map[string]any
	err := json.Unmarshal(s.log.Bytes(), &decoded)
	if err != nil || bytes.Count(s.log.Bytes(), []byte("\n")) != 1 {
		s.t.Fatalf("log %q: %v", s.log.String(), err)
	}
	return decoded
}

func readGoldenEvent(t testing.TB, name string) []byte {
	t.Helper()
	payload, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// REST APIs pass the path as sent, SAM's local API decoded: handlers get the same request.
func TestGoldenEventsOfAPIGatewayAndSAM(t *testing.T) {
	tests := []struct{ name, resource, parameter, want, header, value, inBody string }{
		{"charge", chargeResource, "endUserId", "acr:OperatorAPIToken",
			"GW-Token", "GW_TOKEN", `"referenceCode":"REF-0001"`},
		{"pay", payResource, "", "", "mno-name", "orange", `"order_id":"DemoShop_1001"`},
		{"sms", smsResource, "senderAddress", "tel:+2250000", "x-operator-ise2", "ALIAS", `accept%C3%A9`},
	}
	for _, test := range tests {
		for _, form := range []string{"rest", "sam"} {
			t.Run(test.name+" "+form, func(t *testing.T) {
				s := newGatewayFixture(t, apigw.Config{}, handleCreated)
				rendered := s.invoke(readGoldenEvent(t, test.name+"-"+form))
				rendered.Headers = nil
				if diff := cmp.Diff(proxyResponse{StatusCode: 201, Body: `{"state":"<&>"}`}, rendered); diff != "" {
					t.Fatalf("response (-want +got):\n%s", diff)
				}
				r := s.lastRequest
				if s.lastResource != test.resource || r.Params[test.parameter] != test.want {
					t.Errorf("%s with %v", s.lastResource, r.Params)
				}
				if got := r.Header(test.header); got != test.value || r.HasConflictingHeader(test.header) {
					t.Errorf("header %s is %q", test.header, got)
				}
				if !strings.Contains(string(r.Body), test.inBody) {
					t.Errorf("body %s", r.Body)
				}
				if err := apigw.RequireJSON(r); err != nil {
					t.Errorf("RequireJSON: %v", err)
				}
				if id := s.readLogLine()["RequestID"]; id == nil {
					t.Error("the line has no request id")
				}
			})
		}
	}
}

func TestParametersAreDecodedOnce(t *testing.T) {
	tests := []struct{ name, sent, want string }{
		{"encoded", "tel%3A%2B225", "tel:+225"},
		{"decoded", "tel:+225", "tel:+225"},
		{"half encoded", "tel%3A+225", "tel:+225"},
		{"lower case", "tel%3a%2b225", "tel:+225"},
		{"encoded twice", "tel%253A%252B225", "tel%3A%2B225"},
		{"space", "a%20b", "a b"},
		{"slash", "a%2Fb", "a/b"},
		{"UTF-8", "%C3%A9", "é"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newGatewayFixture(t, apigw.Config{}, handleCreated)
			s.invokeChanged("sms-rest", func(e map[string]any) {
				e["pathParameters"] = map[string]string{"senderAddress": test.sent}
			})
			if got := s.lastRequest.Params["senderAddress"]; got != test.want {
				t.Errorf("%q became %q", test.sent, got)
			}
		})
	}
}

func TestNoRoute(t *testing.T) {
	set := func(key string, value any) func(map[string]any) {
		return func(e map[string]any) { e[key] = value }
	}
	parameter := func(value string) func(map[string]any) {
		return set("pathParameters", map[string]string{"senderAddress": value})
	}
	tests := map[string]func(map[string]any){
		"another method":        set("httpMethod", "GET"),
		"method in lower case":  set("httpMethod", "post"),
		"another resource":      set("resource", "/mobilemoney/v2"),
		"catch-all":             set("resource", "/{proxy+}"),
		"no resource":           set("resource", nil),
		"only a percent sign":   parameter("100%"),
		"percent and one digit": parameter("tel%3"),
		"percent and letters":   parameter("tel%zz"),
		"not UTF-8":             parameter("%FF"),
		"NUL":                   parameter("tel%00"),
		"line end":              parameter("tel%0A"),
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			s := newGatewayFixture(t, apigw.Config{}, handleCreated)
			rendered := s.invokeChanged("sms-rest", change)
			if rendered.StatusCode != 404 || !strings.Contains(rendered.Body, `"900906"`) {
				t.Errorf("response %+v, want 404 with 900906", rendered)
			}
			if s.lastRequest != nil {
				t.Error("the handler ran")
			}
			s.wantLine(map[string]any{"Status": 404.0, "ErrorID": "900906"})
		})
	}
}

func TestBodyLimit(t *testing.T) {
	const limit = apigw.MaxBodyBytes
	encode := func(size int) string { return base64.StdEncoding.EncodeToString(make([]byte, size)) }
	tests := []struct {
		name   string
		body   string
		base64 bool
		status int
	}{
		{"at the limit", strings.Repeat("x", limit), false, 201},
		{"over", strings.Repeat("x", limit+1), false, 413},
		{"bytes count, not characters", strings.Repeat("é", limit/2) + "1", false, 413},
		{"at the limit in base64", encode(limit), true, 201},
		{"over in base64", encode(limit + 1), true, 413},
		{"empty", "", false, 201},
		{"empty in base64", "", true, 201},
		{"broken base64", "MTIz*", true, 400},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newGatewayFixture(t, apigw.Config{}, handleCreated)
			rendered := s.invokeChanged("pay-rest", func(e map[string]any) {
				e["body"], e["isBase64Encoded"] = test.body, test.base64
			})
			if rendered.StatusCode != test.status {
				t.Fatalf("status %d, want %d", rendered.StatusCode, test.status)
			}
			if test.status == 201 && len(s.lastRequest.Body) > limit {
				t.Errorf("the handler gets %d bytes", len(s.lastRequest.Body))
			}
			if test.status != 201 && s.lastRequest != nil {
				t.Error("the handler ran")
			}
			if test.status != 201 && !strings.Contains(rendered.Body, `"variables":["body"]`) {
				t.Errorf("the error does not name the body: %s", rendered.Body)
			}
		})
	}
}

// Decision "order-of-refusals": the route comes before the size.
func TestUnknownRoutePrecedesBodyLimit(t *testing.T) {
	s := newGatewayFixture(t, apigw.Config{}, handleCreated)
	rendered := s.invokeChanged("pay-rest", func(e map[string]any) {
		e["httpMethod"], e["body"] = "PUT", strings.Repeat("x", apigw.MaxBodyBytes+1)
	})
	if rendered.StatusCode != 404 {
		t.Errorf("response %+v, want 404", rendered)
	}
}
