package apigw_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/apigw"
)

const (
	chargeResource = "/payment/v1/{endUserId}/transactions/amount"
	payResource    = "/mobilemoney/v1"
	smsResource    = "/smsmessaging/v1/outbound/{senderAddress}/requests"
)

// gatewayFixture is a gateway with its log, over one handler for all three operations.
type gatewayFixture struct {
	gateway     *apigw.Gateway
	log         bytes.Buffer
	lastRequest *apigw.Request // the last request that a handler saw
}

type handler = func(ctx context.Context, r *apigw.Request) (apigw.Response, error)

func newGatewayFixture(config apigw.Config, handle handler) *gatewayFixture {
	s := &gatewayFixture{}
	clock := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	config.Now = func() time.Time {
		clock = clock.Add(5 * time.Millisecond)
		return clock
	}
	config.Operation = "charge"
	config.Log = &s.log
	recordAndHandle := func(ctx context.Context, r *apigw.Request) (apigw.Response, error) {
		s.lastRequest = r
		return handle(ctx, r)
	}
	s.gateway = apigw.New(config,
		apigw.Route{Method: "POST", Resource: chargeResource, Handle: recordAndHandle},
		apigw.Route{Method: "POST", Resource: payResource, Handle: recordAndHandle},
		apigw.Route{Method: "POST", Resource: smsResource, Handle: recordAndHandle},
	)
	return s
}

func handleCreated(context.Context, *apigw.Request) (apigw.Response, error) {
	return apigw.Response{Status: 201, Header: map[string]string{"Location": "https://api.example.test/1"}, Body: []byte(`{"state":"<&>"}`)}, nil
}

// proxyResponse is API Gateway's side of an answer.
type proxyResponse struct {
	StatusCode      int               `json:"statusCode"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

func (s *gatewayFixture) invoke(t *testing.T, payload []byte) proxyResponse {
	t.Helper()
	return s.invokeWithContext(t, t.Context(), payload)
}

func (s *gatewayFixture) invokeWithContext(t *testing.T, ctx context.Context, payload []byte) proxyResponse {
	t.Helper()
	s.log.Reset()
	rendered, err := s.gateway.Invoke(ctx, payload)
	if err != nil {
		t.Fatalf("Lambda was given the error %v", err)
	}
	var decoded proxyResponse
	err = json.Unmarshal(rendered, &decoded)
	if err != nil {
		t.Fatalf("answer %s: %v", rendered, err)
	}
	return decoded
}

// readLogLine is the one telemetry line of the last invocation.
func (s *gatewayFixture) readLogLine(t *testing.T) map[string]any {
	t.Helper()
	var decoded map[string]any
	err := json.Unmarshal(s.log.Bytes(), &decoded)
	if err != nil || bytes.Count(s.log.Bytes(), []byte("\n")) != 1 {
		t.Fatalf("log %q: %v", s.log.String(), err)
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

// modifyGoldenEvent is a golden event with one change.
func modifyGoldenEvent(t *testing.T, name string, change func(event map[string]any)) []byte {
	t.Helper()
	var event map[string]any
	err := json.Unmarshal(readGoldenEvent(t, name), &event)
	if err != nil {
		t.Fatal(err)
	}
	change(event)
	payload, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// REST APIs hand the path over as it was sent, SAM's local API decoded: handlers see the same.
func TestGoldenEventsOfAPIGatewayAndSAM(t *testing.T) {
	tests := []struct{ name, resource, parameter, want, header, value, inBody string }{
		{"charge", chargeResource, "endUserId", "acr:OperatorAPIToken", "GW-Token", "GW_TOKEN", `"referenceCode":"REF-0001"`},
		{"pay", payResource, "", "", "mno-name", "orange", `"order_id":"DemoShop_1001"`},
		{"sms", smsResource, "senderAddress", "tel:+2250000", "x-operator-ise2", "ALIAS", `accept%C3%A9`},
	}
	for _, test := range tests {
		for _, form := range []string{"rest", "sam"} {
			t.Run(test.name+" "+form, func(t *testing.T) {
				s := newGatewayFixture(apigw.Config{}, handleCreated)
				rendered := s.invoke(t, readGoldenEvent(t, test.name+"-"+form))
				if rendered.StatusCode != 201 || rendered.Body != `{"state":"<&>"}` || rendered.IsBase64Encoded {
					t.Fatalf("answer %+v", rendered)
				}
				r := s.lastRequest
				if r.Method != "POST" || r.Resource != test.resource || r.Params[test.parameter] != test.want {
					t.Errorf("%s %s with %v", r.Method, r.Resource, r.Params)
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
				if r.ID == "" || s.readLogLine(t)["RequestID"] != r.ID {
					t.Errorf("request id %q, in the line %v", r.ID, s.readLogLine(t)["RequestID"])
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
			s := newGatewayFixture(apigw.Config{}, handleCreated)
			s.invoke(t, modifyGoldenEvent(t, "sms-rest", func(e map[string]any) { e["pathParameters"] = map[string]string{"senderAddress": test.sent} }))
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
		"percent alone":         parameter("100%"),
		"percent and one digit": parameter("tel%3"),
		"percent and letters":   parameter("tel%zz"),
		"not UTF-8":             parameter("%FF"),
		"NUL":                   parameter("tel%00"),
		"line end":              parameter("tel%0A"),
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			s := newGatewayFixture(apigw.Config{}, handleCreated)
			rendered := s.invoke(t, modifyGoldenEvent(t, "sms-rest", change))
			if rendered.StatusCode != 404 || !strings.Contains(rendered.Body, `"900906"`) || s.lastRequest != nil {
				t.Errorf("answer %+v, handler ran: %v", rendered, s.lastRequest != nil)
			}
			if line := s.readLogLine(t); line["Status"] != float64(404) || line["ErrorID"] != "900906" {
				t.Errorf("line %v", line)
			}
		})
	}
}

func TestBodyLimit(t *testing.T) {
	tests := []struct {
		name   string
		body   string
		base64 bool
		status int
	}{
		{"at the limit", "12345678", false, 201},
		{"over", "123456789", false, 413},
		{"bytes count, not characters", "éééé1", false, 413},
		{"at the limit in base64", "MTIzNDU2Nzg=", true, 201},
		{"over in base64", "MTIzNDU2Nzg5", true, 413},
		{"empty", "", false, 201},
		{"empty in base64", "", true, 201},
		{"broken base64", "MTIz*", true, 400},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newGatewayFixture(apigw.Config{MaxBodyBytes: 8}, handleCreated)
			rendered := s.invoke(t, modifyGoldenEvent(t, "pay-rest", func(e map[string]any) {
				e["body"], e["isBase64Encoded"] = test.body, test.base64
			}))
			if rendered.StatusCode != test.status {
				t.Fatalf("answer %+v", rendered)
			}
			if test.status == 201 && len(s.lastRequest.Body) > 8 {
				t.Errorf("body %q", s.lastRequest.Body)
			}
			if test.status != 201 && (s.lastRequest != nil || !strings.Contains(rendered.Body, `"variables":["body"]`)) {
				t.Errorf("answer %+v, handler ran: %v", rendered, s.lastRequest != nil)
			}
		})
	}
}

func TestDefaultBodyLimit(t *testing.T) {
	s := newGatewayFixture(apigw.Config{}, handleCreated)
	for size, want := range map[int]int{apigw.DefaultMaxBodyBytes: 201, apigw.DefaultMaxBodyBytes + 1: 413} {
		rendered := s.invoke(t, modifyGoldenEvent(t, "pay-rest", func(e map[string]any) { e["body"] = strings.Repeat("x", size) }))
		if rendered.StatusCode != want {
			t.Errorf("%d bytes are answered %d", size, rendered.StatusCode)
		}
	}
}

// Decision "order-of-refusals": the route comes before the size.
func TestUnknownRoutePrecedesBodyLimit(t *testing.T) {
	s := newGatewayFixture(apigw.Config{MaxBodyBytes: 1}, handleCreated)
	rendered := s.invoke(t, modifyGoldenEvent(t, "pay-rest", func(e map[string]any) { e["httpMethod"] = "PUT" }))
	if rendered.StatusCode != 404 {
		t.Errorf("answer %+v", rendered)
	}
}
