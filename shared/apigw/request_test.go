package apigw_test

import (
	"errors"
	"testing"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
)

func headersOf(t *testing.T, single map[string]string, multi map[string][]string) *apigw.Request {
	t.Helper()
	s := newGatewayFixture(t, apigw.Config{}, handleCreated)
	s.invokeChanged("pay-rest", func(e map[string]any) {
		e["headers"], e["multiValueHeaders"] = single, multi
	})
	return s.lastRequest
}

func TestHeaders(t *testing.T) {
	tests := []struct {
		name     string
		single   map[string]string
		multi    map[string][]string
		want     string
		repeated bool
	}{
		{"absent", nil, nil, "", false},
		{"only the single map", map[string]string{"Lang": " fr "}, nil, "fr", false},
		{"both maps", map[string]string{"lang": "fr"}, map[string][]string{"lang": {"fr"}}, "fr", false},
		{"only the multi map", nil, map[string][]string{"LANG": {"fr"}}, "fr", false},
		{"sent twice, equal", map[string]string{"lang": "fr"}, map[string][]string{"lang": {"fr", " fr"}}, "fr", false},
		{"sent twice, unequal", map[string]string{"lang": "en"}, map[string][]string{"lang": {"fr", "en"}}, "en", true},
		{"sent in two cases", nil, map[string][]string{"Lang": {"fr"}, "lang": {"en"}}, "en", true},
		{"in two cases in the single map", map[string]string{"Lang": "fr", "lang": "en"}, nil, "en", true},
		{"not in the multi map", map[string]string{"lang": "fr"}, map[string][]string{"channel": {"web"}}, "fr", false},
		{"sent empty", nil, map[string][]string{"lang": {""}}, "", false},
		{"no values", nil, map[string][]string{"lang": {}}, "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := headersOf(t, test.single, test.multi)
			if got := r.Header("lAnG"); got != test.want || r.HasConflictingHeader("LANG") != test.repeated {
				t.Errorf("header %q (conflicting: %v), want %q (%v)",
					got, r.HasConflictingHeader("LANG"), test.want, test.repeated)
			}
		})
	}
}

func TestRequireJSON(t *testing.T) {
	for contentType, ok := range map[string]bool{
		"application/json":                   true,
		"Application/JSON":                   true,
		"application/json; charset=utf-8":    true,
		"application/json ;charset=utf-8":    true,
		"":                                   false,
		"text/json":                          false,
		"application/jsonx":                  false,
		"application/json, text/plain":       false,
		"application/x-www-form-urlencoded":  false,
		"application/problem+json":           false,
		"text/plain; type=application/json;": false,
	} {
		r := &apigw.Request{}
		r.SetHeader("content-type", contentType)
		err := apigw.RequireJSON(r)
		if (err == nil) != ok {
			t.Errorf("%q: %v", contentType, err)
		}
		var f *fault.Fault
		if err != nil && (!errors.As(err, &f) || f.Kind != fault.UnsupportedMediaType) {
			t.Errorf("%q: %v", contentType, err)
		}
	}
	if apigw.RequireJSON(&apigw.Request{}) == nil {
		t.Error("a request without Content-Type is accepted")
	}
	duplicate := headersOf(t, nil, map[string][]string{"Content-Type": {"text/plain", "application/json"}})
	if apigw.RequireJSON(duplicate) == nil {
		t.Error("two different Content-Types are accepted")
	}
}

// Decision "base-url": the parameter, else domain and stage of the request context. The golden event has a foreign Host
// header, which is ignored.
func TestBaseURL(t *testing.T) {
	const ownDomain, chinaDomain = "x.execute-api.eu-west-3.amazonaws.com", "x.execute-api.cn-north-1.amazonaws.com.cn"
	tests := []struct{ name, configured, domain, stage, want string }{
		{"parameter", "https://pay.example.test", ownDomain, "prod", "https://pay.example.test"},
		{"parameter with slash", "https://pay.example.test/", "", "", "https://pay.example.test"},
		{"API Gateway's domain", "", ownDomain, "prod", "https://" + ownDomain + "/prod"},
		{"in China", "", chinaDomain, "prod", "https://" + chinaDomain + "/prod"},
		{"custom domain", "", "pay.example.test", "prod", "https://pay.example.test"},
		{"domain that only looks so", "", "amazonaws.com.example.test", "prod", "https://amazonaws.com.example.test"},
		{"no stage", "", ownDomain, "", "https://" + ownDomain},
		{"no domain", "", "", "prod", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newGatewayFixture(t, apigw.Config{BaseURL: test.configured}, handleCreated)
			s.invokeChanged("pay-rest", func(e map[string]any) {
				e["requestContext"] = map[string]string{"domainName": test.domain, "stage": test.stage}
			})
			if s.lastRequest.BaseURL != test.want {
				t.Errorf("base URL %q, want %q", s.lastRequest.BaseURL, test.want)
			}
		})
	}
}

func TestQuery(t *testing.T) {
	s := newGatewayFixture(t, apigw.Config{}, handleCreated)
	s.invokeChanged("pay-rest", func(e map[string]any) {
		e["queryStringParameters"] = map[string]string{"grant_type": "client_credentials"}
	})
	if got := s.lastRequest.Query["grant_type"]; got != "client_credentials" {
		t.Errorf("query %v", s.lastRequest.Query)
	}
}
