package sandbox

import (
	"net/http"
	"strings"
	"testing"
)

func TestFromEnvironment(t *testing.T) {
	for _, c := range []struct {
		name, set string
		want      FaultSettings
		fault     string
	}{
		{"nothing", "", FaultSettings{}, ""},
		{"only a seed", "SANDBOX_SEED=7", FaultSettings{Seed: 7, Delay: 0.1, Duplicate: 0.1, Reorder: 0.1,
			LostResponse: 0.1, Unavailable: 0.1}, ""},
		{"a seed and rates",
			"SANDBOX_SEED=7 SANDBOX_DELAY=0 SANDBOX_DUPLICATE=1 SANDBOX_REORDER=0 SANDBOX_LOST_ANSWER=0.5 " +
				"SANDBOX_UNAVAILABLE=0",
			FaultSettings{Seed: 7, Duplicate: 1, LostResponse: 0.5}, ""},
		{"only a rate", "SANDBOX_LOST_ANSWER=0.25 SANDBOX_MAX_DELAY_MS=300",
			FaultSettings{LostResponse: 0.25, MaxDelayMS: 300}, ""},
		{"a bad seed", "SANDBOX_SEED=-1", FaultSettings{}, "SANDBOX_SEED"},
		{"a bad rate", "SANDBOX_REORDER=2", FaultSettings{}, "SANDBOX_REORDER"},
		{"no number", "SANDBOX_DELAY=NaN", FaultSettings{}, "SANDBOX_DELAY"},
		{"a bad delay", "SANDBOX_MAX_DELAY_MS=600000", FaultSettings{}, "SANDBOX_MAX_DELAY_MS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := map[string]string{}
			for _, pair := range strings.Fields(c.set) {
				name, value, _ := strings.Cut(pair, "=")
				set[name] = value
			}
			got, err := FaultSettingsFromEnvironment(func(name string) (string, bool) {
				value, ok := set[name]
				return value, ok
			})
			equal(t, "settings", got, c.want)
			if (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("the error is %v, want one about %q", err, c.fault)
			}
		})
	}
}

// The calls of the control port; true for those that a token for tests opens.
var controlCalls = map[string]bool{
	"POST /sandbox/v1/tests":       true,
	"GET /sandbox/v1/slots":        true,
	"POST /sandbox/v1/slots":       true,
	"DELETE /sandbox/v1/slots/1":   true,
	"GET /sandbox/v1/effects":      false,
	"GET /sandbox/v1/transactions": false,
	"POST /sandbox/v1/settle":      false,
	"GET /sandbox/v1/steering":     false,
	"PUT /sandbox/v1/steering":     false,
	"GET /sandbox/v1/script":       false,
	"POST /sandbox/v1/script":      false,
	"DELETE /sandbox/v1/script":    false,
	"GET /sandbox/v1/tests":        false,
	"PUT /sandbox/v1/slots":        false,
	"GET /sandbox/v1/slots/1":      false,
	"GET /sandbox":                 false,
	"GET /sandbox/v1/nothing":      false,
}

// refuses reports whether a call with an Authorization header is refused for its token.
func (r *testSandbox) refuses(call, authorization string) bool {
	r.Helper()
	method, path, _ := strings.Cut(call, " ")
	return r.do(method, path, "{}", map[string]string{"Authorization": authorization}).status == http.StatusUnauthorized
}

// With its own tokens, the control port refuses every other caller, also with the operator API's token. A token for
// tests opens only tests and slots. The page needs no token.
func TestControlPortWithTokens(t *testing.T) {
	r := newTestSandbox(t, func(c *Config) {
		c.ControlTokens, c.TestsTokens = []string{"control"}, testsTokens("tests", "tests before")
	})
	equal(t, "the operator API is refused", r.refuses("GET /mobilemoney/v1/getStatus/Shop_1", "Bearer tests"), true)
	for call, open := range controlCalls {
		for _, token := range []string{"Bearer tests", "Bearer tests before"} {
			equal(t, call+" is refused with "+token, r.refuses(call, token), !open)
		}
		wrongs := []string{"", "Bearer ", "Bearer current", "Bearer test", "Bearer control2", "Basic control"}
		for _, wrong := range wrongs {
			equal(t, call+" is refused with "+wrong, r.refuses(call, wrong), true)
		}
		equal(t, call+" is refused with a control token", r.refuses(call, "Bearer control"), false)
	}
	equal(t, "status of the page", r.payWeb("Shop_1", "").get().status, 200)
}

// A token for tests needs a protected control port, and must not open more.
func TestConfigIsChecked(t *testing.T) {
	for _, c := range []struct {
		name, base, tokens, control, tests string // the tokens with commas between them; "-" is none
		faults                             FaultSettings
		isGood                             bool
	}{
		{"an open port", "http://x", "t", "-", "-", FaultSettings{}, true},
		{"all kinds", "http://x", "t", "c", "x,y", FaultSettings{}, true},
		{"no address", "", "t", "-", "-", FaultSettings{}, false},
		{"no tokens", "http://x", "-", "-", "-", FaultSettings{}, false},
		{"an empty token", "http://x", "", "-", "-", FaultSettings{}, false},
		{"an empty token for tests", "http://x", "t", "c", "", FaultSettings{}, false},
		{"no control tokens", "http://x", "t", "-", "x", FaultSettings{}, false},
		{"the control port's token", "http://x", "t", "c", "c", FaultSettings{}, false},
		{"the operator API's token", "http://x", "t", "c", "x,t", FaultSettings{}, false},
		{"a rate of 2", "http://x", "t", "-", "-", FaultSettings{Delay: 2}, false},
	} {
		list := func(text string) []string { return strings.Split(text, ",")[strings.Count(text, "-"):] }
		s, err := New(Config{BaseURL: c.base, Tokens: list(c.tokens), ControlTokens: list(c.control),
			TestsTokens: testsTokens(list(c.tests)...), Faults: c.faults})
		equal(t, c.name+": it is good", err == nil, c.isGood)
		if err == nil {
			equal(t, "error of Close", s.Close(), nil)
		}
	}
}

// testsTokens returns tokens without a merchant.
func testsTokens(tokens ...string) (all []TestsToken) {
	for _, token := range tokens {
		all = append(all, TestsToken{Token: token})
	}
	return all
}
