package sandbox

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mobilegateway/shared/strictjson"
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

// The same seed gives the same faults: set at the start, or later at the control port.
func TestSeedFromEnvironment(t *testing.T) {
	texts := func(r *testSandbox) string {
		var all []string
		for i := range 40 {
			all = append(all, r.charge(fmt.Sprint("Shop.", i), "5555").summary())
		}
		return strings.Join(all, " ")
	}
	steering := FaultSettings{Seed: 7, LostResponse: 0.3, Unavailable: 0.3}
	begun := newTestSandbox(t, func(c *Config) { c.Faults = steering })
	steered := newTestSandbox(t)
	steered.control("PUT /steering", string(strictjson.Marshal(steering)), 200, nil)
	other := newTestSandbox(t, func(c *Config) { c.Faults = steering; c.Faults.Seed = 8 })
	first := texts(begun)
	if second := texts(steered); first != second {
		t.Errorf("%s\n%s", first, second)
	}
	if third := texts(other); first == third {
		t.Errorf("another seed, the same: %s", third)
	}
	_, err := New(Config{Tokens: []string{"t"}, BaseURL: "http://x", Faults: FaultSettings{Delay: 2}})
	if err == nil {
		t.Error("a rate of 2 is taken")
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

// With its own tokens, the control port refuses every other caller, also with the operator API's token. The page needs
// no token.
func TestControlPortWithTokens(t *testing.T) {
	r := newTestSandbox(t, func(c *Config) { c.ControlTokens = []string{"secret"} })
	web := r.payWeb("Shop_1", "")
	for call := range controlCalls {
		for _, wrong := range []string{"", "Bearer ", "Bearer current", "Bearer secrets", "Basic secret"} {
			equal(t, call+" is refused with "+wrong, r.refuses(call, wrong), true)
		}
		equal(t, call+" is refused with its token", r.refuses(call, "Bearer secret"), false)
	}
	equal(t, "status of the page", r.do("GET", web.path(), "", nil).status, 200)
}

// A token for tests opens only tests and slots. A control token opens them too.
func TestTestsTokenScope(t *testing.T) {
	r := newTestSandbox(t, func(c *Config) {
		c.ControlTokens, c.TestsTokens = []string{"control"}, testsTokens("tests", "tests before")
	})
	r.payWeb("Shop_1", "")
	equal(t, "the operator API is refused", r.refuses("GET /mobilemoney/v1/getStatus/Shop_1", "Bearer tests"), true)
	for call, open := range controlCalls {
		for _, token := range []string{"Bearer tests", "Bearer tests before"} {
			equal(t, call+" is refused with "+token, r.refuses(call, token), !open)
		}
		for _, wrong := range []string{"", "Bearer current", "Bearer test", "Basic tests"} {
			equal(t, call+" is refused with "+wrong, r.refuses(call, wrong), true)
		}
		equal(t, call+" is refused with a control token", r.refuses(call, "Bearer control"), false)
	}
}

// A token for tests needs a protected control port, and must not open more.
func TestTokensMustDiffer(t *testing.T) {
	for name, c := range map[string]Config{
		"no control tokens": {Tokens: []string{"t"}, TestsTokens: testsTokens("x")},
		"the control port's": {Tokens: []string{"t"}, ControlTokens: []string{"c", "x"},
			TestsTokens: testsTokens("x")},
		"the operator API's": {Tokens: []string{"t"}, ControlTokens: []string{"c"},
			TestsTokens: testsTokens("x", "t")},
		"empty": {Tokens: []string{"t"}, ControlTokens: []string{"c"}, TestsTokens: testsTokens("")},
		"fine": {Tokens: []string{"t"}, ControlTokens: []string{"c"},
			TestsTokens: testsTokens("x", "y")},
		"no tokens for tests": {Tokens: []string{"t"}, ControlTokens: []string{"c"}},
		"an open port":        {Tokens: []string{"t"}},
	} {
		c.BaseURL = "http://x"
		s, err := New(c)
		if good := len(c.TestsTokens) == 0 || name == "fine"; (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = s.Close()
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
