package gatewayctl

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/pawapay"
)

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
	d, account := newTestTool(t), newAccount(t, "pawapay", server.URL, pawapay.DefaultCredentials().APIToken)
	text := strings.TrimSuffix(credentialsOf(t, "pawapay", "main", account), "}")
	d.vault.values["operators"] = []byte(text +
		`,"routes":{"moov":[{"country":"BF","operation":"pay","channel":"ussd","to":"pawapay/main"}]}}`)
	code, out, stderr := d.run("operator check")
	if code != 0 || strings.Count(stderr, "MOOV_BFA takes 1 to 2000000 XOF") != 1 ||
		strings.Count(stderr, "takes") != 1 {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
	other = strings.NewReplacer("*555*6#", "*556#")
	code, out, stderr = d.run("operator check")
	if code != ExitFailed || !strings.Contains(out, "the payer does not dial *555*6#") {
		t.Errorf("another short code: exit %d, %s%s", code, out, stderr)
	}
}
