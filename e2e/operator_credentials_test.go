package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/localtest"
)

// TestOperatorCredentials starts with credentials that lack service_id, as an earlier version let an engineer store
// them. The merchant gets 502, and good credentials work within a minute, without a restart. Files that would stop the
// charges again are refused.
func TestOperatorCredentials(t *testing.T) {
	requireLocalRun(t)
	t.Parallel()
	e := newCtlSession(t, localtest.Options{}) // with the normal lifetime of cached secrets
	replaceInCredentials(t, e.run.Environment(), `"service_id"`, `"service-id"`)
	e.expectCharge(http.StatusBadGateway)
	code, out, _ := e.runCommand("operator check sandbox")
	if code != 1 || !strings.Contains(out, "service_id is missing") {
		t.Errorf("operator check: exit %d, %s", code, out)
	}
	set := func(account string) (code int, stderr string) {
		file := filepath.Join(t.TempDir(), "credentials.json")
		text := fmt.Sprintf(`{"sandbox":{"accounts":{"local":%s}}}`, account)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr = e.runCommand("operator set " + file + confirmFlags)
		return code, stderr
	}
	renewed := time.Now()
	if code, stderr := set(`{"service_id":"` + e.target.ServiceID + `"}`); code != 0 {
		t.Fatalf("operator set: exit %d: %s", code, stderr)
	}
	eventuallyNoError(t, time.Minute, func() error {
		return e.chargeOnce(e.target.MerchantCredentials, http.StatusCreated)
	})
	t.Logf("the good credentials worked after %s", time.Since(renewed).Round(time.Second))
	e.mustRun("operator check sandbox", nil)
	for account, want := range map[string]string{
		`{"servce_id":"x"}`:                           "servce_id: unknown field",
		`{"access_token":""}`:                         "access_token: is empty",
		`{"base_url":"https://other.example"}`:        "base_url of account local of sandbox cannot be changed",
		`{"service_id":"other"}`:                      "service_id of account local of sandbox cannot be changed",
		`{"service_id":"` + e.target.ServiceID + `"}`: "nothing changes",
	} {
		if code, stderr := set(account); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %s", account, code, stderr)
		}
	}
	e.expectCharge(http.StatusCreated)
}

// expectCharge makes one charge.
func (e *ctlSession) expectCharge(status int) {
	e.t.Helper()
	if err := e.chargeOnce(e.target.MerchantCredentials, status); err != nil {
		e.t.Error(err)
	}
}
