package gatewayctl

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/merchant"
)

func TestDryRunChangesNothing(t *testing.T) {
	d, shop := newShopTool(t)
	d.addDeliveredPayment(shop, 1, d.now)
	d.input = credentialsOf(t, "sandbox", "a", newAccount(t, "sandbox", "https://o.example", "t"))
	puts, records := d.vault.puts, len(d.audit.records)
	before, _ := d.merchants.Profile(t.Context(), shop.ID)
	for _, line := range []string{
		"merchant add ShopB --country ci --operator sandbox", "merchant change ShopA --country ci,sn",
		"merchant suspend ShopA", "host add ShopA b.example",
		"token issue ShopA", "token rotate ShopA", "token revoke ShopA 1", "token revoke ShopA --short-lived",
		"client-secret issue ShopA",
		"client-secret rotate ShopA", "client-secret revoke ShopA 1", "webhook-secret show ShopA",
		"webhook-secret rotate ShopA",
		"webhook-secret revoke ShopA 1 --last", "keys add tokens", "operator set -", "deliveries replay ShopA_1",
	} {
		code, out, stderr := d.run(line)
		if code != ExitDone || !strings.Contains(stderr, "Dry run") {
			t.Errorf("%s: exit %d, %s", line, code, stderr)
		}
		if strings.Contains(out, "gwl_") || strings.Contains(out, "gwc_") || strings.Contains(out, "whsec_") {
			t.Errorf("%s shows a secret that is not issued: %s", line, out)
		}
	}
	after, _ := d.merchants.Profile(t.Context(), shop.ID)
	if ids, _ := d.merchants.IDs(t.Context()); len(ids) != 1 || after.Version != before.Version {
		t.Errorf("%d merchants, version %d", len(ids), after.Version)
	}
	if d.vault.puts != puts || len(d.audit.records) != records || d.ledger.CallCount("Replace") != 0 {
		t.Error("a dry run wrote something")
	}
}

// A dry run shows a placeholder for the id that the real run would create.
func TestADryRunShowsNoID(t *testing.T) {
	d := newTestTool(t)
	d.apply("keys add webhooks")
	output := query[onboardingResult](d, "merchant add ShopA --country ci --operator sandbox")
	checkEqual(t, "id", output.ID, "(shown with --yes)")
	checkEqual(t, "client id", output.ClientID, "(shown with --yes)")
	_, out, stderr := d.run("merchant add ShopA --country ci --operator sandbox")
	for line := range strings.Lines(out + stderr) {
		if strings.Contains(line, "id ") && !strings.Contains(line, "(shown with --yes)") {
			t.Errorf("a dry run shows an id: %q", line)
		}
	}
	output = query[onboardingResult](d, "merchant add ShopA --country ci --operator sandbox"+confirmFlags)
	profile, err := d.merchants.Profile(t.Context(), output.ID)
	if err != nil || profile == nil || output.ClientID != output.ID {
		t.Errorf("the real run shows id %q and client id %q: profile %v, %v", output.ID, output.ClientID, profile, err)
	}
}

func TestOnboarding(t *testing.T) {
	d := newTestTool(t)
	d.expectExit("merchant add ShopA --country ci --operator sandbox"+confirmFlags, ExitFailed, "keys add webhooks")
	shop := d.onboardShop()
	if !merchant.IsWellFormedClientSecret(shop.ClientID, shop.ClientSecret) ||
		!strings.HasPrefix(shop.AccessToken, "gwl_"+shop.ID+"_") ||
		!strings.HasPrefix(shop.WebhookSecret, "whsec_") {
		t.Errorf("a secret is malformed: %q, %q, %q", shop.ClientSecret, shop.AccessToken, shop.WebhookSecret)
	}
	checkEqual(t, "operations", joinComma(shop.Operations), "charge, pay, sms")
	checkEqual(t, "notification hosts", joinComma(shop.NotificationHosts), "shop.example")
	checkEqual(t, "home country", shop.HomeCountry, "CI")
	for _, r := range d.audit.records {
		if strings.Contains(r.Detail, "gwl_") ||
			r.Who != "local:ama@host" || r.Why != "test" || r.Credential != "KEYID" {
			t.Errorf("audit record of %s: who %q, why %q, credential %q, detail %q", r.What, r.Who, r.Why,
				r.Credential, r.Detail)
		}
	}
	d.expectExit("merchant add SHOPA --country ci --operator sandbox", ExitFailed, "taken")
	d.expectExit("merchant add Shop-A --country ci --operator sandbox", ExitUsage, "letters and digits")
	d.expectExit("merchant add ShopC --country ci --operator bogus", ExitUsage, `"bogus"`)
	d.expectExit("merchant add ShopC --country fr --operator sandbox", ExitUsage, `"FR"`)
	d.expectExit("merchant add ShopC --country ci --operator sandbox --notif-url http://127.0.0.1/", ExitUsage,
		"notif")
	d.expectExit("merchant add ShopC --operator sandbox", ExitUsage, "--country")
	d.expectExit("merchant show ShopX", ExitFailed, "no merchant")
	d.expectExit("merchant suspend ShopA --yes", ExitUsage, "--reason")
	d.expectExit("merchant suspend ShopA --yes --reason "+strings.Repeat("x", 501), ExitUsage, "500 bytes")
}

func TestChangeSuspendResume(t *testing.T) {
	d, shop := newShopTool(t)
	line := "merchant change ShopA --country sn,ci --host b.example --notif-url https://b.example/n" + confirmFlags
	checkEqual(t, "differences", query[[]fieldChange](d, line), []fieldChange{
		{"countries", "CI", "SN, CI"}, {"home country", "CI", "SN"},
		{"notification hosts", "shop.example", "b.example"},
		{"notif_url", "https://shop.example/n", "https://b.example/n"},
	})
	view := query[merchantView](d, "merchant show "+shop.ID)
	checkEqual(t, "countries", joinComma(view.Countries), "SN, CI")
	d.expectExit("merchant change ShopA --country sn,ci"+confirmFlags, ExitFailed, "nothing would change")
	d.apply("merchant suspend ShopA")
	view = query[merchantView](d, "merchant show ShopA")
	checkEqual(t, "status of a suspended merchant", view.Status, merchant.StatusSuspended)
	checkEqual(t, "token generation", view.Generation, 2)
	d.apply("merchant resume ShopA")
	all := query[[]merchantView](d, "merchant list")
	checkEqual(t, "merchants", len(all), 1)
	checkEqual(t, "status of a resumed merchant", all[0].Status, merchant.StatusActive)
}

// A replay waits until no function has the profile of before in its cache. It knows that by UpdatedAt, so each command
// that changes a profile sets it.
func TestProfileCommandsSetUpdated(t *testing.T) {
	for _, line := range []string{
		"merchant change ShopA --notif-url https://shop.example/other",
		"merchant suspend ShopA", "merchant resume ShopA",
		"host add ShopA b.example", "host remove ShopA b.example",
		"token issue ShopA", "token revoke ShopA 2", "token rotate ShopA --force",
		"client-secret issue ShopA", "client-secret revoke ShopA 2", "client-secret rotate ShopA --force",
		"webhook-secret rotate ShopA", "webhook-secret revoke ShopA 1", "keys revoke webhooks 1 --compromised",
	} {
		t.Run(line, func(t *testing.T) {
			d, shop := newShopTool(t)
			d.now = d.now.Add(time.Hour)
			d.apply(map[string][]string{
				"merchant resume ShopA":         {"merchant suspend ShopA"},
				"host remove ShopA b.example":   {"host add ShopA b.example"},
				"token revoke ShopA 2":          {"token issue ShopA"},
				"client-secret revoke ShopA 2":  {"client-secret issue ShopA"},
				"webhook-secret revoke ShopA 1": {"webhook-secret rotate ShopA"},
			}[line]...)
			d.now = d.now.Add(time.Hour)
			d.apply(line)
			profile, err := d.merchants.Profile(t.Context(), shop.ID)
			if err != nil {
				t.Fatal(err)
			}
			checkEqual(t, "updated", profile.UpdatedAt, d.now)
		})
	}
}

func TestHosts(t *testing.T) {
	d, _ := newShopTool(t)
	d.expectExit("host add ShopA 10.0.0.1"+confirmFlags, ExitUsage, "10.0.0.1")
	d.expectExit("host add ShopA 127.0.0.1:8080"+confirmFlags, ExitUsage, "127.0.0.1")
	d.expectExit("host add ShopA shop.example"+confirmFlags, ExitFailed, "nothing would change")
	d.expectExit("host remove ShopA shop.example"+confirmFlags, ExitUsage, "notif_url")
	d.apply("host add ShopA b.example c.example:8443", "host remove ShopA b.example")
	checkEqual(t, "hosts", query[[]string](d, "host list ShopA"), []string{"shop.example", "c.example:8443"})
}

func TestAudit(t *testing.T) {
	d, _ := newShopTool(t)
	d.now = d.now.Add(48 * time.Hour)
	d.audit.outcomes = nil
	d.apply("merchant suspend ShopA")
	checkEqual(t, "outcomes in the order of writing", d.audit.outcomes, []string{OutcomeStarted, OutcomeDone})
	d.now = d.now.Add(time.Second)
	d.audit.failAt = OutcomeStarted
	d.expectExit("merchant resume ShopA"+confirmFlags, ExitFailed, "nothing was done")
	d.audit.failAt = OutcomeDone
	d.expectExit("merchant resume ShopA"+confirmFlags, ExitFailed, "could not be completed")
	d.audit.failAt = ""
	var records []string
	for _, r := range query[[]Record](d, "audit --subject shopa --since 2026-03-03") {
		records = append(records, r.What+" "+r.Outcome)
	}
	checkEqual(t, "records", records, []string{"suspend a merchant done", "resume a merchant started"})
	d.expectExit("audit --since tomorrow", ExitUsage, "day")
}

func TestCredentials(t *testing.T) {
	for _, kind := range []string{"token", "client-secret"} {
		t.Run(kind, func(t *testing.T) {
			d, shop := newShopTool(t)
			second := query[issuedCredential](d, kind+" issue ShopA"+confirmFlags)
			if second.Number != 2 || !strings.Contains(second.AccessToken+second.ClientSecret, shop.ID) {
				t.Fatalf("issued %+v", second)
			}
			for _, r := range d.audit.records {
				if strings.HasPrefix(r.What, "issue") && r.Detail != "number 2" {
					t.Errorf("detail: %q", r.Detail)
				}
			}
			d.now = d.now.Add(time.Second)
			d.expectExit(kind+" issue ShopA"+confirmFlags, ExitFailed, "two are live")
			d.expectExit(kind+" rotate ShopA"+confirmFlags, ExitFailed, "--force")
			third := query[issuedCredential](d, kind+" rotate ShopA --force --overlap 1h"+confirmFlags)
			if !slices.ContainsFunc(slices.Collect(maps.Values(d.audit.records)), func(r Record) bool {
				return r.Detail == "number 3; 2 ends at 2026-03-01T13:00:01Z"
			}) {
				t.Error("no audit record names the new and the ending credential")
			}
			checkEqual(t, "number", third.Number, 3)
			checkEqual(t, "ending numbers", third.EndingNumbers, []int{2})
			checkEqual(t, "end", third.EndAt, d.now.Add(time.Hour))
			live := func() (live []bool) {
				for _, v := range query[[]credentialView](d, kind+" list ShopA") {
					live = append(live, v.Live)
				}
				return live
			}
			checkEqual(t, "live in the overlap", live(), []bool{true, true})
			d.now = d.now.Add(time.Hour)
			checkEqual(t, "live after the overlap", live(), []bool{false, true})
			d.apply(kind + " revoke ShopA 3")
			checkEqual(t, "live after the revocation", live(), []bool{false, false})
			d.expectExit(kind+" revoke ShopA 9"+confirmFlags, ExitFailed, "no credential")
			d.expectExit(kind+" revoke ShopA"+confirmFlags, ExitUsage, "number")
			d.expectExit(kind+" rotate ShopA --overlap=-1s"+confirmFlags, ExitUsage, "--overlap")
			d.expectExit(kind+" revoke ShopA 3 --after=-1s"+confirmFlags, ExitUsage, "--after")
			d.now = d.now.Add(time.Second)
			d.apply(kind+" issue ShopA", kind+" revoke ShopA 4 --after 2h")
			views := query[[]credentialView](d, kind+" list ShopA")
			checkEqual(t, "expiry", views[len(views)-1].Expires, d.now.Add(2*time.Hour))
		})
	}
}

func TestWebhookSecrets(t *testing.T) {
	d, shop := newShopTool(t)
	first := query[webhookSecretOutput](d, "webhook-secret show ShopA"+confirmFlags)
	checkEqual(t, "secret of the onboarding", first.Secret, shop.WebhookSecret)
	d.apply("keys add webhooks")
	d.now = d.now.Add(5 * time.Minute)
	second := query[webhookSecretOutput](d, "webhook-secret rotate ShopA"+confirmFlags)
	checkEqual(t, "version after the rotation", second.Version, 2)
	checkEqual(t, "secret of version 1", query[webhookSecretOutput](d, "webhook-secret show ShopA 1"+confirmFlags),
		first)
	checkEqual(t, "same secret after the rotation", second.Secret == first.Secret, false)
	checkEqual(t, "versions", query[[]webhookView](d, "webhook-secret list ShopA"), []webhookView{
		{2, 2, d.now}, {1, 1, d.now.Add(-5 * time.Minute)},
	})
	d.expectExit("webhook-secret rotate ShopA"+confirmFlags, ExitFailed, "two are live")
	d.apply("webhook-secret revoke ShopA 1")
	d.expectExit("webhook-secret show ShopA 1"+confirmFlags, ExitFailed, "no credential")
}

// A revoked secret is never issued again.
func TestARevokedWebhookSecretStaysRevoked(t *testing.T) {
	d := newTestTool(t)
	seen := map[string]bool{d.onboardShop().WebhookSecret: true}
	for _, lines := range [][]string{
		{"webhook-secret rotate ShopA", "webhook-secret revoke ShopA 2", "webhook-secret rotate ShopA"},
		{"webhook-secret revoke ShopA 1", "webhook-secret revoke ShopA 3 --last", "webhook-secret rotate ShopA"},
	} {
		for _, line := range lines {
			if !strings.Contains(line, "rotate") {
				d.apply(line)
				continue
			}
			issued := query[webhookSecretOutput](d, line+confirmFlags)
			if issued.Secret == "" || seen[issued.Secret] {
				t.Errorf("%s: version %d was issued before", line, issued.Version)
			}
			seen[issued.Secret] = true
		}
	}
}

// Without a webhook secret no notification is sent: the tool needs --last, and prints a warning.
func TestRevokingTheLastWebhookSecret(t *testing.T) {
	d, _ := newShopTool(t)
	for _, flags := range []string{"", confirmFlags} {
		d.expectExit("webhook-secret revoke ShopA 1"+flags, ExitFailed, "rotate first")
		for _, want := range []string{"no notification", "unsigned", "webhook-secret rotate"} {
			if flags == "" {
				d.expectExit("webhook-secret revoke ShopA 1 --last", ExitDone, want)
			}
		}
	}
	d.expectExit("webhook-secret revoke ShopA 1 --last"+confirmFlags, ExitDone, "no notification is sent")
}

func TestRevokeNeedsTokenNumber(t *testing.T) {
	d, _ := newShopTool(t)
	before := len(d.audit.records)
	for _, words := range []string{"1 --short-lived", "--short-lived --after 1h", "1 --short-lived --after 1h",
		"--after=0s --short-lived"} {
		d.expectExit("token revoke ShopA "+words+confirmFlags, ExitUsage, "--short-lived")
	}
	view := query[merchantView](d, "merchant show ShopA")
	checkEqual(t, "expiry after refused commands", view.Tokens[0].Expires, time.Time{})
	checkEqual(t, "token generation after refused commands", view.Generation, 1)
	checkEqual(t, "audit records of refused commands", len(d.audit.records)-before, 0)
	d.apply("token revoke ShopA --short-lived")
}

func TestSuspendingTwice(t *testing.T) {
	d, _ := newShopTool(t)
	d.expectExit("merchant resume ShopA"+confirmFlags, ExitFailed, "nothing would change")
	d.apply("merchant suspend ShopA")
	d.expectBoth("merchant suspend ShopA", ExitFailed, "nothing would change")
	checkEqual(t, "token generation", query[merchantView](d, "merchant show ShopA").Generation, 2)
}

func TestBlankReasons(t *testing.T) {
	d, _ := newShopTool(t)
	for _, why := range []string{"", "   ", "\t\n", "\u00a0"} {
		code, _, stderr := d.runArguments("merchant", "suspend", "ShopA", "--yes", "--reason", why)
		if code != ExitUsage || !strings.Contains(stderr, "--reason") {
			t.Errorf("%q: exit %d, %s", why, code, stderr)
		}
	}
	code, _, stderr := d.runArguments("merchant", "suspend", "ShopA", "--yes", "--reason", "  a stolen laptop \n")
	if code != ExitDone {
		t.Fatal(code, stderr)
	}
	records := query[[]Record](d, "audit --subject ShopA")
	if !slices.ContainsFunc(records, func(r Record) bool { return r.Why == "a stolen laptop" }) {
		t.Error("no audit record has the trimmed reason")
	}
}

func TestAuditRecordsFailureCause(t *testing.T) {
	d, _ := newShopTool(t)
	d.changeStores(func(s *Stores) { s.Merchants = failingRegistry{s.Merchants} })
	d.expectExit("merchant suspend ShopA"+confirmFlags, ExitFailed, "the table does not respond")
	records := query[[]Record](d, "audit --subject ShopA")
	i := slices.IndexFunc(records, func(r Record) bool { return r.What == "suspend a merchant" })
	if last := records[i]; last.Outcome != OutcomeFailed || !strings.Contains(last.Detail, "active -> suspended") ||
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
