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

// stage is a gateway with its log, over one handler for all three operations.
type stage struct {
	gateway *apigw.Gateway
	log     bytes.Buffer
	seen    *apigw.Request // the last request that a handler saw
}

type handler = func(ctx context.Context, r *apigw.Request) (apigw.Response, error)

func newStage(config apigw.Config, handle handler) *stage {
	s := &stage{}
	clock := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	config.Now = func() time.Time {
		clock = clock.Add(5 * time.Millisecond)
		return clock
	}
	config.Operation = "charge"
	config.Log = &s.log
	seen := func(ctx context.Context, r *apigw.Request) (apigw.Response, error) {
		s.seen = r
		return handle(ctx, r)
	}
	s.gateway = apigw.New(config,
		apigw.Route{Method: "POST", Resource: chargeResource, Handle: seen},
		apigw.Route{Method: "POST", Resource: payResource, Handle: seen},
		apigw.Route{Method: "POST", Resource: smsResource, Handle: seen},
	)
	return s
}

func created(context.Context, *apigw.Request) (apigw.Response, error) {
	return apigw.Response{Status: 201, Header: map[string]string{"Location": "https://api.example.test/1"}, Body: []byte(`{"state":"<&>"}`)}, nil
}

// reply is API Gateway's side of an answer.
type reply struct {
	StatusCode      int               `json:"statusCode"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

func (s *stage) invoke(t *testing.T, payload []byte) reply {
	t.Helper()
	return s.invokeWith(t, t.Context(), payload)
}

func (s *stage) invokeWith(t *testing.T, ctx context.Context, payload []byte) reply {
	t.Helper()
	s.log.Reset()
	answer, err := s.gateway.Invoke(ctx, payload)
	if err != nil {
		t.Fatalf("Lambda was given the error %v", err)
	}
	var decoded reply
	err = json.Unmarshal(answer, &decoded)
	if err != nil {
		t.Fatalf("answer %s: %v", answer, err)
	}
	return decoded
}

// line is the one telemetry line of the last invocation.
func (s *stage) line(t *testing.T) map[string]any {
	t.Helper()
	var decoded map[string]any
	err := json.Unmarshal(s.log.Bytes(), &decoded)
	if err != nil || bytes.Count(s.log.Bytes(), []byte("\n")) != 1 {
		t.Fatalf("log %q: %v", s.log.String(), err)
	}
	return decoded
}

func golden(t testing.TB, name string) []byte {
	t.Helper()
	payload, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// changed is a golden event with one change.
func changed(t *testing.T, name string, change func(event map[string]any)) []byte {
	t.Helper()
	var event map[string]any
	err := json.Unmarshal(golden(t, name), &event)
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
func TestGoldenEventsOfBothForms(t *testing.T) {
	tests := []struct{ name, resource, parameter, want, header, value, inBody string }{
		{"charge", chargeResource, "endUserId", "acr:OperatorAPIToken", "GW-Token", "GW_TOKEN", `"referenceCode":"REF-0001"`},
		{"pay", payResource, "", "", "mno-name", "orange", `"order_id":"DemoShop_1001"`},
		{"sms", smsResource, "senderAddress", "tel:+2250000", "x-operator-ise2", "ALIAS", `accept%C3%A9`},
	}
	for _, test := range tests {
		for _, form := range []string{"rest", "sam"} {
			t.Run(test.name+" "+form, func(t *testing.T) {
				s := newStage(apigw.Config{}, created)
				answer := s.invoke(t, golden(t, test.name+"-"+form))
				if answer.StatusCode != 201 || answer.Body != `{"state":"<&>"}` || answer.IsBase64Encoded {
					t.Fatalf("answer %+v", answer)
				}
				r := s.seen
				if r.Method != "POST" || r.Resource != test.resource || r.Params[test.parameter] != test.want {
					t.Errorf("%s %s with %v", r.Method, r.Resource, r.Params)
				}
				if got := r.Header(test.header); got != test.value || r.HeaderRepeated(test.header) {
					t.Errorf("header %s is %q", test.header, got)
				}
				if !strings.Contains(string(r.Body), test.inBody) {
					t.Errorf("body %s", r.Body)
				}
				if err := apigw.RequireJSON(r); err != nil {
					t.Errorf("RequireJSON: %v", err)
				}
				if r.ID == "" || s.line(t)["RequestID"] != r.ID {
					t.Errorf("request id %q, in the line %v", r.ID, s.line(t)["RequestID"])
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
			s := newStage(apigw.Config{}, created)
			s.invoke(t, changed(t, "sms-rest", func(e map[string]any) { e["pathParameters"] = map[string]string{"senderAddress": test.sent} }))
			if got := s.seen.Params["senderAddress"]; got != test.want {
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
			s := newStage(apigw.Config{}, created)
			answer := s.invoke(t, changed(t, "sms-rest", change))
			if answer.StatusCode != 404 || !strings.Contains(answer.Body, `"900906"`) || s.seen != nil {
				t.Errorf("answer %+v, handler ran: %v", answer, s.seen != nil)
			}
			if line := s.line(t); line["Status"] != float64(404) || line["ErrorID"] != "900906" {
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
			s := newStage(apigw.Config{MaxBody: 8}, created)
			answer := s.invoke(t, changed(t, "pay-rest", func(e map[string]any) {
				e["body"], e["isBase64Encoded"] = test.body, test.base64
			}))
			if answer.StatusCode != test.status {
				t.Fatalf("answer %+v", answer)
			}
			if test.status == 201 && len(s.seen.Body) > 8 {
				t.Errorf("body %q", s.seen.Body)
			}
			if test.status != 201 && (s.seen != nil || !strings.Contains(answer.Body, `"variables":["body"]`)) {
				t.Errorf("answer %+v, handler ran: %v", answer, s.seen != nil)
			}
		})
	}
}

func TestDefaultBodyLimit(t *testing.T) {
	s := newStage(apigw.Config{}, created)
	for size, want := range map[int]int{apigw.DefaultMaxBody: 201, apigw.DefaultMaxBody + 1: 413} {
		answer := s.invoke(t, changed(t, "pay-rest", func(e map[string]any) { e["body"] = strings.Repeat("x", size) }))
		if answer.StatusCode != want {
			t.Errorf("%d bytes are answered %d", size, answer.StatusCode)
		}
	}
}

// Decision "order-of-refusals": the route comes before the size.
func TestRouteComesBeforeSize(t *testing.T) {
	s := newStage(apigw.Config{MaxBody: 1}, created)
	answer := s.invoke(t, changed(t, "pay-rest", func(e map[string]any) { e["httpMethod"] = "PUT" }))
	if answer.StatusCode != 404 {
		t.Errorf("answer %+v", answer)
	}
}
