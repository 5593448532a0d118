package accounts_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/pawapay"
)

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
		d := gatewayctltest.New(t)
		d.UseAccount(c.platform, "a1", address, "good")
		code, _, stderr := d.Exec("operator check")
		if code != gatewayctl.ExitFailed || strings.Count(stderr, c.want) != 1 || strings.Contains(stderr, c.none) {
			t.Errorf("%s responds %d: exit %d, %s, want %q", c.platform, c.status, code, stderr, c.want)
		}
	}
	d, account := gatewayctltest.New(t), gatewayctltest.NewAccount(t, "sandbox", "http://127.0.0.1:1", "good")
	delete(account, "service_id")
	d.Vault.Values["operators"] = []byte(gatewayctltest.CredentialsOf(t, "sandbox", "a1", account))
	d.ExpectExit("operator check", gatewayctl.ExitFailed,
		"account a1 of sandbox: correct what the error names: gatewayctl operator set")
}

// A check compares what the platform shows of an account, for the services that have a route to it.
func TestOperatorCheckComparesTheConfiguration(t *testing.T) {
	stub := pawapay.New(kit.Config{}, pawapay.DefaultCredentials()).Handler()
	other := strings.NewReplacer()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		stub.ServeHTTP(recorder, r)
		w.WriteHeader(recorder.Code)
		_, _ = other.WriteString(w, recorder.Body.String())
	}))
	t.Cleanup(server.Close)
	d, account := gatewayctltest.New(t), gatewayctltest.NewAccount(t, "pawapay", server.URL,
		pawapay.DefaultCredentials().APIToken)
	text := strings.TrimSuffix(gatewayctltest.CredentialsOf(t, "pawapay", "main", account), "}")
	d.Vault.Values["operators"] = []byte(text +
		`,"routes":{"moov":[{"country":"BF","operation":"pay","channel":"ussd","to":"pawapay/main"}]}}`)
	code, out, stderr := d.Exec("operator check")
	if code != 0 || strings.Count(stderr, "MOOV_BFA takes 1 to 2000000 XOF") != 1 ||
		strings.Count(stderr, "takes") != 1 {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
	other = strings.NewReplacer("*555*6#", "*556#")
	results, _ := gatewayctltest.QueryExit[[]accounts.OperationCheck](d, "operator check", gatewayctl.ExitFailed)
	d.Equal("another short code", strings.Contains(results[0].Error, "the payer does not dial *555*6#"), true)
}
