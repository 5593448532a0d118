package token

import (
	"context"
	"strings"
	"testing"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
)

// decision "merchant-limits": a token request counts against its merchant's rate, but only with the right secret.
func TestRate(t *testing.T) {
	d := newFixture(t)
	d.profile.RequestsPerSecond, d.profile.Burst = 1, 2
	if err := d.store.Update(context.Background(), d.profile); err != nil {
		t.Fatal(err)
	}
	good := tokenCall{authorization: basicAuth(d.profile.ID, d.secret), body: grantForm}
	for range 5 {
		d.send(tokenCall{authorization: basicAuth(d.profile.ID, otherSecretOf(t, d)), body: grantForm})
	}
	if writes := d.limits.CallCount(storetest.UpdateRate); writes != 0 {
		t.Errorf("%d writes for requests with a wrong secret, want none", writes)
	}
	for range 2 {
		if a := d.send(good); a.Status != 200 {
			t.Fatalf("response %d %s within the rate, want 200", a.Status, a.Raw)
		}
	}
	a := d.send(good)
	if a.Status != 429 || a.Body.Error != "temporarily_unavailable" {
		t.Fatalf("response %d %s over the rate, want 429 temporarily_unavailable", a.Status, a.Raw)
	}
	assertHeaders(t, a, map[string]string{"Retry-After": "1", "Cache-Control": "no-store", "WWW-Authenticate": ""})
	operationtest.Golden(t, "testdata/rate-limited.json", []byte(a.Raw))
	if line := d.log.String(); !strings.Contains(line, "RateLimitedRequests") {
		t.Error("the log does not count RateLimitedRequests")
	}
	d.limits.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
	d.profile.Burst = 100 // the process must write to the table again
	if err := d.store.Update(context.Background(), d.profile); err != nil {
		t.Fatal(err)
	}
	if a := d.send(good); a.Status != 200 {
		t.Errorf("response %d %s while the table of limits fails, want 200", a.Status, a.Raw)
	}
}
