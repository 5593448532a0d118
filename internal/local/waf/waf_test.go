package waf_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/local/waf"
)

const deployed = "../../../deploy/waf.yaml"

// fixture is the deployed web ACL with a clock that the test moves.
type fixture struct {
	acl *waf.ACL
	now time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{now: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)}
	var err error
	if f.acl, err = waf.Load(deployed, func() time.Time { return f.now }); err != nil {
		t.Fatal(err)
	}
	return f
}

// status returns the status with which the web ACL blocks a request, 0 if it passes.
func (f *fixture) status(method, path, authorization, address string, bodyBytes int64) int {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr = address + ":4000"
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	if blocked := f.acl.Check(r, bodyBytes); blocked != nil {
		return blocked.Status
	}
	return 0
}

const (
	token    = "Bearer gwl_x"
	lookup   = "/mobilemoney/v1/getStatus/Shop_1"
	callback = "/dev/callbacks/v1/payments/orange/Shop_1/token"
)

func TestFixedRules(t *testing.T) {
	for name, c := range map[string]struct {
		method, path  string
		bodyBytes     int64
		want          int
		authorization string
	}{
		"the largest body":            {"POST", "/mobilemoney/v1", 64 << 10, 0, token},
		"a larger body":               {"POST", "/mobilemoney/v1", 64<<10 + 1, 413, token},
		"a callback":                  {"POST", callback, 100, 0, ""},
		"a large callback":            {"POST", callback, 64<<10 + 1, 413, ""},
		"a callback by PUT":           {"PUT", callback, 100, 0, ""},
		"a callback by GET":           {"GET", callback, 0, 404, ""},
		"a callback without a stage":  {"GET", "/callbacks/v1/x", 0, 404, ""},
		"no callback, escaped slash":  {"GET", lookup + "%2Fcallbacks%2Fv1%2Fx", 0, 0, token},
		"a lookup":                    {"GET", lookup, 0, 0, token},
		"an anonymous lookup, once":   {"GET", lookup, 0, 0, ""},
		"a token of another provider": {"GET", lookup, 0, 0, "Bearer x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newFixture(t).status(c.method, c.path, c.authorization, "127.0.0.2", c.bodyBytes); got != c.want {
				t.Errorf("status %d, want %d", got, c.want)
			}
		})
	}
}

// TestRates checks how many of 1,000 requests in a minute pass, and that other addresses are not blocked with them.
func TestRates(t *testing.T) {
	const perMinute = 10_000
	for name, c := range map[string]struct {
		method, path, authorization string
		addresses, want             int
		otherAnonymous              int // the status of an anonymous request from another address after it
	}{
		"a merchant":                        {"GET", lookup, token, 1, 6000, 0},
		"a token in lower case":             {"GET", lookup, "bearer gws_x", 1, 6000, 0},
		"no token":                          {"GET", lookup, "", 1, 50, 0},
		"an invented token":                 {"GET", lookup, "Bearer x", 1, 50, 0},
		"a client secret":                   {"POST", "/token", "Basic x", 1, 50, 0},
		"no token, from 40 addresses":       {"GET", lookup, "", 40, 600, 429},
		"a client secret, of 40 addresses":  {"POST", "/token", "Basic x", 40, 2000, 0},
		"an operator":                       {"POST", callback, "", 1, 6000, 0},
		"an unknown route, of 40 addresses": {"GET", "/x", "", 40, 600, 429},
	} {
		t.Run(name, func(t *testing.T) {
			f, passed := newFixture(t), 0
			for i := range perMinute {
				address := fmt.Sprintf("127.0.1.%d", i%c.addresses)
				if f.status(c.method, c.path, c.authorization, address, 0) == 0 {
					passed++
				}
				f.now = f.now.Add(time.Minute / (perMinute + 1))
			}
			if passed != c.want {
				t.Errorf("%d requests passed, want %d", passed, c.want)
			}
			if got := f.status("GET", lookup, token, "127.0.0.9", 0); got != 0 {
				t.Errorf("a merchant at another address gets %d, want to pass", got)
			}
			if got := f.status("GET", lookup, "", "127.0.0.9", 0); got != c.otherAnonymous {
				t.Errorf("an anonymous request from another address gets %d, want %d", got, c.otherAnonymous)
			}
			f.now = f.now.Add(2 * time.Minute)
			if got := f.status(c.method, c.path, c.authorization, "127.0.1.0", 0); got != 0 {
				t.Errorf("after two minutes the address gets %d, want to pass", got)
			}
		})
	}
}

// TestExemptions checks which paths escape the limits of anonymous requests: only callbacks and the token endpoint, as
// the request sent them.
func TestExemptions(t *testing.T) {
	const each, all = 50, 600     // requests a minute without a token: of an address, of all addresses
	const fromOne, sent = 60, 700 // requests of an address, and of 40 addresses together
	for path, c := range map[string]struct{ oneAddress, manyAddresses int }{
		"/callbacks/v1/payments/orange/Shop_1/t":      {fromOne, sent},
		"/dev/callbacks/v1/accounts/payments/mtn/a/s": {fromOne, sent},
		"/callbacks/v1/payments/orange/Shop%2F1/t":    {fromOne, sent},
		"/token":        {each, sent},
		"/token/":       {each, sent},
		"/prod/token":   {each, sent},
		"/callbacks/v1": {each, all},
		"/callbacks/x":  {each, all},
		"/tokens":       {each, all},
		"/token/x":      {each, all},
		"/%74oken":      {each, all},
		"/c%61llbacks/v1/payments/orange/Shop_1/t":        {each, all},
		"/a/b/callbacks/v1/x":                             {each, all},
		lookup + "%2Fcallbacks%2F":                        {each, all},
		lookup + "%2Fcallbacks%2Fv1%2F":                   {each, all},
		lookup + "/callbacks/v1/x":                        {each, all},
		lookup + "%252Fcallbacks%252Fv1%252F":             {each, all},
		lookup + "%2Ftoken":                               {each, all},
		lookup + "/token":                                 {each, all},
		"/payment/v1/x%2Fcallbacks%2Fv1%2F/transactions/": {each, all},
		"/dev%2Fcallbacks%2Fv1%2Fx":                       {each, all},
		"/dev%2Ftoken":                                    {each, all},
		"//token":                                         {each, all},
		"//callbacks/v1/x":                                {each, all},
	} {
		for _, run := range []struct{ addresses, requests, want int }{
			{1, fromOne, c.oneAddress}, {40, sent, c.manyAddresses},
		} {
			f, passed := newFixture(t), 0
			for i := range run.requests {
				if f.status("POST", path, "", fmt.Sprintf("127.0.1.%d", i%run.addresses), 0) == 0 {
					passed++
				}
			}
			if passed != run.want {
				t.Errorf("%s from %d addresses: %d requests passed, want %d", path, run.addresses, passed, run.want)
			}
		}
	}
}

func TestBlockedResponse(t *testing.T) {
	f := newFixture(t)
	var blocked *waf.Response
	for range 51 {
		blocked = f.acl.Check(httptest.NewRequest(http.MethodGet, lookup, nil), 0)
	}
	if blocked == nil || blocked.Status != 429 || blocked.Header["Retry-After"] != "60" ||
		!strings.Contains(blocked.Body, "900800") {
		t.Errorf("the response is %+v, want 429 900800 with Retry-After 60", blocked)
	}
}

func TestUnsupportedTemplates(t *testing.T) {
	text, err := os.ReadFile(deployed)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string][2]string{
		"another field":    {"{UriPath: {}}", "{QueryString: {}}"},
		"another position": {"PositionalConstraint: EXACTLY", "PositionalConstraint: ENDS_WITH"},
		"a decoded path":   {"{Priority: 0, Type: NONE}", "{Priority: 0, Type: URL_DECODE}"},
		"an invalid regex": {"^(/[a-z0-9]+)?/token", "^((/[a-z0-9]+)?/token"},
		"another key":      {"AggregateKeyType: CONSTANT", "AggregateKeyType: FORWARDED_IP"},
		"another operator": {"ComparisonOperator: GT", "ComparisonOperator: LT"},
		"another resource": {"  WebAcl:", "  Other:"},
	} {
		path := filepath.Join(t.TempDir(), "waf.yaml")
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), c[0], c[1])), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := waf.Load(path, time.Now); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
