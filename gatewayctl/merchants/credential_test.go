package merchants_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	official "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/merchant"
)

func TestAudit(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	d.Now = d.Now.Add(48 * time.Hour)
	d.Audit.Outcomes = nil
	d.Apply("merchant suspend ShopA")
	d.Equal("outcomes in the order of writing", d.Audit.Outcomes,
		[]string{auditlog.OutcomeStarted, auditlog.OutcomeDone})
	d.Now = d.Now.Add(time.Second)
	d.Audit.FailAt = auditlog.OutcomeStarted
	d.ExpectFailed("merchant resume ShopA", "nothing was done")
	d.Audit.FailAt = auditlog.OutcomeDone
	d.ExpectFailed("merchant resume ShopA", "could not be completed")
	d.Audit.FailAt = ""
	var records []string
	for _, r := range gatewayctltest.Query[[]auditlog.Record](d, "audit --subject shopa --since 2026-03-03") {
		records = append(records, r.What+" "+r.Outcome)
	}
	d.Equal("records", records, []string{"suspend a merchant done", "resume a merchant started"})
	d.ExpectExit("audit --since tomorrow", gatewayctl.ExitUsage, "day")
}

func TestCredentials(t *testing.T) {
	for _, kind := range []string{"token", "client-secret"} {
		t.Run(kind, func(t *testing.T) {
			d, shop := gatewayctltest.NewShop(t)
			second := gatewayctltest.Change[merchants.IssuedCredential](d, kind+" issue ShopA")
			if second.Number != 2 || !strings.Contains(second.AccessToken+second.ClientSecret, shop.ID) {
				t.Fatalf("issued %+v", second)
			}
			for _, r := range d.Audit.Records {
				if strings.HasPrefix(r.What, "issue") && r.Detail != "number 2" {
					t.Errorf("detail: %q", r.Detail)
				}
			}
			d.Now = d.Now.Add(time.Second)
			d.ExpectFailed(kind+" issue ShopA", "two are live")
			d.ExpectFailed(kind+" rotate ShopA", "--force")
			third := gatewayctltest.Change[merchants.IssuedCredential](d, kind+" rotate ShopA --force --overlap 1h")
			if !slices.ContainsFunc(slices.Collect(maps.Values(d.Audit.Records)), func(r auditlog.Record) bool {
				return r.Detail == "number 3; 2 ends at 2026-03-01T13:00:01Z"
			}) {
				t.Error("no audit record names the new and the ending credential")
			}
			d.Equal("number", third.Number, 3)
			d.Equal("ending numbers", third.EndingNumbers, []int{2})
			d.Equal("end", third.EndAt, d.Now.Add(time.Hour))
			live := func() (live []bool) {
				for _, v := range gatewayctltest.Query[[]merchants.Credential](d, kind+" list ShopA") {
					live = append(live, v.Live)
				}
				return live
			}
			d.Equal("live in the overlap", live(), []bool{true, true})
			d.Now = d.Now.Add(time.Hour)
			d.Equal("live after the overlap", live(), []bool{false, true})
			d.Apply(kind + " revoke ShopA 3")
			d.Equal("live after the revocation", live(), []bool{false, false})
			d.ExpectFailed(kind+" revoke ShopA 9", "no credential")
			d.ExpectExit(kind+" revoke ShopA"+gatewayctltest.Confirm, gatewayctl.ExitUsage, "number")
			d.ExpectExit(kind+" rotate ShopA --overlap=-1s"+gatewayctltest.Confirm, gatewayctl.ExitUsage, "--overlap")
			d.ExpectExit(kind+" revoke ShopA 3 --after=-1s"+gatewayctltest.Confirm, gatewayctl.ExitUsage, "--after")
			d.Now = d.Now.Add(time.Second)
			d.Apply(kind+" issue ShopA", kind+" revoke ShopA 4 --after 2h")
			views := gatewayctltest.Query[[]merchants.Credential](d, kind+" list ShopA")
			d.Equal("expiry", views[len(views)-1].Expires, d.Now.Add(2*time.Hour))
		})
	}
}

func TestWebhookSecrets(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	first := gatewayctltest.Change[merchants.WebhookSecretOutput](d, "webhook-secret show ShopA")
	d.Equal("secret of the onboarding", first.Secret, shop.WebhookSecret)
	d.Apply("keys add webhooks")
	d.Now = d.Now.Add(5 * time.Minute)
	second := gatewayctltest.Change[merchants.WebhookSecretOutput](d, "webhook-secret rotate ShopA")
	d.Equal("version after the rotation", second.Version, 2)
	d.ExpectJSON("secret of version 1", "webhook-secret show ShopA 1"+gatewayctltest.Confirm, first)
	d.Equal("same secret after the rotation", second.Secret == first.Secret, false)
	d.ExpectJSON("versions", "webhook-secret list ShopA", []merchants.WebhookSecret{
		{Version: 2, KeyNumber: 2, CreatedAt: d.Now},
		{Version: 1, KeyNumber: 1, CreatedAt: d.Now.Add(-5 * time.Minute)},
	})
	d.ExpectFailed("webhook-secret rotate ShopA", "two are live")
	d.Apply("webhook-secret revoke ShopA 1")
	d.ExpectFailed("webhook-secret show ShopA 1", "no credential")
}

// A revoked secret is never issued again.
func TestARevokedWebhookSecretStaysRevoked(t *testing.T) {
	d := gatewayctltest.New(t)
	seen := map[string]bool{d.Onboard("ShopA").WebhookSecret: true}
	for _, lines := range [][]string{
		{"webhook-secret rotate ShopA", "webhook-secret revoke ShopA 2", "webhook-secret rotate ShopA"},
		{"webhook-secret revoke ShopA 1", "webhook-secret revoke ShopA 3 --last", "webhook-secret rotate ShopA"},
	} {
		for _, line := range lines {
			if !strings.Contains(line, "rotate") {
				d.Apply(line)
				continue
			}
			issued := gatewayctltest.Change[merchants.WebhookSecretOutput](d, line)
			if issued.Secret == "" || seen[issued.Secret] {
				t.Errorf("%s: version %d was issued before", line, issued.Version)
			}
			seen[issued.Secret] = true
		}
	}
}

// Without a webhook secret no notification is sent: the tool needs --last, and prints a warning.
func TestRevokingTheLastWebhookSecret(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	d.ExpectBoth("webhook-secret revoke ShopA 1", gatewayctl.ExitFailed, "rotate first")
	d.ExpectExit("webhook-secret revoke ShopA 1 --last", gatewayctl.ExitDone, "no notification", "unsigned",
		"webhook-secret rotate")
	d.ExpectExit("webhook-secret revoke ShopA 1 --last"+gatewayctltest.Confirm, gatewayctl.ExitDone,
		"no notification is sent")
}

func TestRevokeNeedsTokenNumber(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	before := len(d.Audit.Records)
	for _, words := range []string{"1 --short-lived", "--short-lived --after 1h", "1 --short-lived --after 1h",
		"--after=0s --short-lived"} {
		d.ExpectExit("token revoke ShopA "+words+gatewayctltest.Confirm, gatewayctl.ExitUsage, "--short-lived")
	}
	view := gatewayctltest.Query[merchants.View](d, "merchant show ShopA")
	d.Equal("expiry after refused commands", view.Tokens[0].Expires, time.Time{})
	d.Equal("token generation after refused commands", view.Generation, 1)
	d.Equal("audit records of refused commands", len(d.Audit.Records)-before, 0)
	d.Apply("token revoke ShopA --short-lived")
}

func TestBlankReasons(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	for _, why := range []string{"", "   ", "\t\n", "\u00a0"} {
		code, _, stderr := d.ExecArguments("merchant", "suspend", "ShopA", "--yes", "--reason", why)
		if code != gatewayctl.ExitUsage || !strings.Contains(stderr, "--reason") {
			t.Errorf("%q: exit %d, %s", why, code, stderr)
		}
	}
	code, _, stderr := d.ExecArguments("merchant", "suspend", "ShopA", "--yes", "--reason", "  a stolen laptop \n")
	if code != gatewayctl.ExitDone {
		t.Fatal(code, stderr)
	}
	records := gatewayctltest.Query[[]auditlog.Record](d, "audit --subject ShopA")
	if !slices.ContainsFunc(records, func(r auditlog.Record) bool { return r.Why == "a stolen laptop" }) {
		t.Error("no audit record has the trimmed reason")
	}
}

func TestAuditRecordsFailureCause(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	d.ChangeStores(func(s *deployment.Stores) { s.Merchants = failingRegistry{s.Merchants} })
	d.ExpectFailed("merchant suspend ShopA", "the table does not respond")
	records := gatewayctltest.Query[[]auditlog.Record](d, "audit --subject ShopA")
	i := slices.IndexFunc(records, func(r auditlog.Record) bool { return r.What == "suspend a merchant" })
	if last := records[i]; last.Outcome != auditlog.OutcomeFailed ||
		!strings.Contains(last.Detail, "active -> suspended") ||
		!strings.Contains(last.Detail, "failed: the table does not respond") || len(last.Detail) > 2000 {
		t.Errorf("audit record: %s, %.100s", last.Outcome, last.Detail)
	}
}

// failingRegistry is a registry whose updates fail.
type failingRegistry struct{ merchant.Registry }

// Update implements merchant.Registry.
func (failingRegistry) Update(context.Context, *merchant.Profile) error {
	return errors.New("the table does not respond " + strings.Repeat("x", 5000))
}

// newMerchantServer starts a merchant's server that responds with a status, and returns its address and the requests
// that it received.
func newMerchantServer(t *testing.T, status int) (address string, received *[]*http.Request, bodies *[]string) {
	t.Helper()
	received, bodies = &[]*http.Request{}, &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*received, *bodies = append(*received, r), append(*bodies, string(body))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "unknown order\x1b[31m"+strings.Repeat("x", 4<<10))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/hook", received, bodies
}

// The sample is signed with every live secret, and its response is shown. Nothing is stored for the endpoint.
func TestWebhookTest(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.Variables["ALLOW_LOOPBACK"] = "true"
	address, received, bodies := newMerchantServer(t, 200)
	d.Apply("webhook-secret rotate ShopA", "merchant change ShopA --host 127.0.0.1 --notif-url "+address)

	dryRun := gatewayctltest.Query[merchants.WebhookTestResult](d, "webhook test --merchant ShopA")
	if len(*received) != 0 || dryRun.URL != address || !strings.Contains(dryRun.Sample, `"order-id":"ShopA_0"`) {
		t.Fatalf("the dry run posted %d, and shows %+v", len(*received), dryRun)
	}
	d.ExpectWithout("webhook test --merchant ShopA", gatewayctl.ExitDone, "delivered")
	result := gatewayctltest.Change[merchants.WebhookTestResult](d, "webhook test --merchant ShopA")
	if !*result.Delivered || result.Status != 200 || len(*received) != 1 || len(result.Response) != (2<<10) {
		t.Fatalf("%d posted, result %+v", len(*received), result)
	}
	d.Equal("versions", result.Versions, []int{2, 1})
	second := gatewayctltest.Change[merchants.WebhookSecretOutput](d, "webhook-secret show ShopA 2").Secret
	for _, secret := range []string{shop.WebhookSecret, second} {
		verifier, err := official.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.VerifyIgnoringTimestamp([]byte((*bodies)[0]), (*received)[0].Header); err != nil {
			t.Errorf("the signature: %v", err)
		}
	}
	d.ExpectOutput("webhook test --merchant ShopA"+gatewayctltest.Confirm, "delivered", "true", "status", "200",
		"unknown order.[31m")

	gone, _, _ := newMerchantServer(t, 410)
	writes := d.Health.WriteCount()
	d.ExpectFailed("webhook test --merchant ShopA --url "+gone, "not accepted: gone 410")
	d.Equal("writes of health", d.Health.WriteCount(), writes)
}

// Without --url the sample goes to the address that is disabled, also if a request named it. The person chooses one of
// several.
func TestWebhookTestOfTheDisabledAddress(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	const named, second = "https://shop.example/of-request?key=1", "https://shop.example/second"
	d.Equal("without a disabled one", gatewayctltest.Query[merchants.WebhookTestResult](d,
		"webhook test --merchant ShopA").URL, gatewayctltest.ShopURL)
	disabledShop(d, shop, named)
	d.ExpectOutput("webhook test --merchant ShopA", "https://shop.example/of-request?***")
	d.ExpectExit("webhook test --merchant ShopA", gatewayctl.ExitDone,
		"The address of the test is the merchant's disabled one: https://shop.example/of-request?***")
	d.ExpectOutput("webhook test --merchant ShopA --url "+gatewayctltest.ShopURL, gatewayctltest.ShopURL)
	d.ExpectOutput("webhook test --merchant ShopA --url https://shop.example/of-request?***", "of-request")
	disabledShop(d, shop, named, second)
	d.ExpectBoth("webhook test --merchant ShopA", gatewayctl.ExitUsage,
		"2 addresses of ShopA are disabled: name one with --url")
}

// The same checks apply as for a payment's notif_url.
func TestWebhookTestRefusals(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	d.ExpectExit("webhook test", gatewayctl.ExitUsage, "--merchant")
	d.ExpectBoth("webhook test --merchant ShopA --url https://other.example/n", gatewayctl.ExitFailed, "not registered")
	d.ExpectBoth("webhook test --merchant ShopA --url http://shop.example/n", gatewayctl.ExitFailed, "not https")
	d.ExpectBoth("webhook test --merchant ShopA --url http://127.0.0.1/n", gatewayctl.ExitFailed, "address")
	d.Apply("webhook-secret revoke ShopA 1 --last")
	d.ExpectBoth("webhook test --merchant ShopA", gatewayctl.ExitFailed, "no webhook secret")
}

// A new secret does not sign at once: the functions may still have the profile of before. The command says from when.
func TestNewWebhookSecretSaysWhenItSigns(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	d.Variables["PROFILE_CACHE_TTL"] = "20s"
	d.Now = d.Now.Add(time.Hour)
	line := "webhook-secret rotate ShopA" + gatewayctltest.Confirm
	d.Equal("signs from", gatewayctltest.Query[merchants.WebhookSecretOutput](d, line).SignsFrom,
		d.Now.Add(25*time.Second))
	d.Apply("webhook-secret revoke ShopA 1")
	d.ExpectExit(line, gatewayctl.ExitDone,
		"Version 3 signs every notification from 2026-03-01T13:00:25Z on, beside version 2")
	d.ExpectOutput("webhook-secret show ShopA 3"+gatewayctltest.Confirm, "signs every notification from",
		"2026-03-01T13:00:25Z")
}
