package gatewayctl

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mobilegateway/shared/operator"
)

// The proposed command works for the platform: only an account with a fixed token has one to rotate.
func TestRenewArguments(t *testing.T) {
	got := map[string]string{}
	for _, platform := range servedPlatforms(func(operator.Capabilities) bool { return true }) {
		got[platform] = renewArguments(accountRef{platform, "a1"})[1]
	}
	checkEqual(t, "commands", got, map[string]string{
		"sandbox": "rotate-token", "orange": "rotate-token", "mtn": "rotate-token", "wave-checkout": "rotate-token",
		"pawapay": "rotate-token", "mtn-momo": "set", "orange-webpay": "set", "orange-cm": "set", "orange-sms": "set",
		"flouci-checkout": "set",
	})
}

// The advice after a failed check follows from what the operator responded. An operator that is down does not need
// other credentials.
func TestOperatorCheckAdvises(t *testing.T) {
	for _, c := range []struct {
		platform   string
		status     int // 0: no server
		want, none string
	}{
		{"orange", 401, "operator rotate-token orange FILE --account a1 --yes", "operator set"},
		{"orange", 403, "operator rotate-token orange FILE --account a1 --yes", "operator set"},
		{"mtn-momo", 401, "refuses its credentials: gatewayctl operator set FILE --yes", "rotate-token"},
		{"wave-checkout", 401, "the operator refuses its credentials", "down"},
		{"orange", 503, "nothing shows that its credentials are wrong", "rotate-token"},
		{"mtn-momo", 500, "nothing shows that its credentials are wrong", "operator set"},
		{"orange", 0, "nothing shows that its credentials are wrong", "rotate-token"},
	} {
		address := "http://127.0.0.1:1"
		if c.status != 0 {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
			}))
			t.Cleanup(server.Close)
			address = server.URL
		}
		d := newTestTool(t)
		d.input = credentialsOf(t, c.platform, "a1", newAccount(t, c.platform, address, "good"))
		d.apply("operator set -")
		code, _, stderr := d.run("operator check")
		if code != ExitFailed || strings.Count(stderr, c.want) != 1 || strings.Contains(stderr, c.none) {
			t.Errorf("%s responds %d: exit %d, %s, want %q", c.platform, c.status, code, stderr, c.want)
		}
	}
	d, account := newTestTool(t), newAccount(t, "sandbox", "http://127.0.0.1:1", "good")
	delete(account, "service_id")
	d.vault.values["operators"] = []byte(credentialsOf(t, "sandbox", "a1", account))
	d.expectExit("operator check", ExitFailed,
		"account a1 of sandbox: correct what the error names: gatewayctl operator set")
}
