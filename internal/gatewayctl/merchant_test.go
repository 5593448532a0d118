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
	d := newTestTool(t)
	shop := d.onboardShop()
	d.addDeliveredPayment(shop, 1, d.now)
	d.input = `{"sandbox":{"current":"a","accounts":{"a":{"base_url":"https://o.example","access_token":"t"}}}}`
	puts, records := d.vault.puts, len(d.audit.records)
	before, _ := d.merchants.Profile(t.Context(), shop.ID)
	for _, line := range []string{
		"merchant add ShopB --country ci --operator sandbox", "merchant change ShopA --country ci,sn", "merchant suspend ShopA", "host add ShopA b.example",
		"token issue ShopA", "token rotate ShopA", "token revoke ShopA 1", "token revoke ShopA --short-lived", "client-secret issue ShopA",
		"client-secret rotate ShopA", "client-secret revoke ShopA 1", "webhook-secret show ShopA", "webhook-secret rotate ShopA",
		"webhook-secret revoke ShopA 1 --last", "keys add tokens", "operator set -", "deliveries replay ShopA_1",
	} {
		code, out, notes := d.run(line)
		if code != ExitDone || !strings.Contains(notes, "Dry run") {
			t.Errorf("%s: exit %d, %s", line, code, notes)
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

// What the real run would make anew is not shown as if it stood.
func TestADryRunShowsNoID(t *testing.T) {
	d := newTestTool(t)
	d.mustRun("keys add webhooks"+confirmFlags, nil)
	var output onboardingResult
	d.mustRun("merchant add ShopA --country ci --operator sandbox", &output)
	if output.ID != "(shown with --yes)" || output.ClientID != output.ID {
		t.Errorf("%+v", output)
	}
	_, out, notes := d.run("merchant add ShopA --country ci --operator sandbox")
	for line := range strings.Lines(out + notes) {
		word := strings.Fields(line)
		if strings.Contains(line, "id ") && !strings.Contains(line, "(shown with --yes)") {
			t.Errorf("%q", word)
		}
	}
	d.mustRun("merchant add ShopA --country ci --operator sandbox"+confirmFlags, &output)
	profile, err := d.merchants.Profile(t.Context(), output.ID)
	if err != nil || profile == nil || output.ClientID != output.ID {
		t.Errorf("the real run: %+v, %v", output, err)
	}
}

func TestOnboarding(t *testing.T) {
	d := newTestTool(t)
	d.expectFailure("merchant add ShopA --country ci --operator sandbox"+confirmFlags, ExitFailed, "keys add webhooks")
	shop := d.onboardShop()
	if !merchant.IsWellFormedClientSecret(shop.ClientID, shop.ClientSecret) || !strings.HasPrefix(shop.AccessToken, "gwl_"+shop.ID+"_") ||
		!strings.HasPrefix(shop.WebhookSecret, "whsec_") {
		t.Errorf("onboarded: %+v", shop)
	}
	if len(shop.Operations) != 3 || shop.NotificationHosts[0] != "shop.example" || shop.HomeCountry != "CI" {
		t.Errorf("profile: %+v", shop.merchantView)
	}
	for _, r := range d.audit.records {
		if strings.Contains(r.Detail, "gwl_") || r.Who != "ama@desk" || r.Why != "test" || r.Credential != "KEYID" {
			t.Errorf("record: %+v", r)
		}
	}
	d.expectFailure("merchant add SHOPA --country ci --operator sandbox", ExitFailed, "taken")
	d.expectFailure("merchant add Shop-A --country ci --operator sandbox", ExitUsage, "letters and digits")
	d.expectFailure("merchant add ShopC --country ci --operator nobody", ExitUsage, `"nobody"`)
	d.expectFailure("merchant add ShopC --country fr --operator sandbox", ExitUsage, `"FR"`)
	d.expectFailure("merchant add ShopC --country ci --operator sandbox --notif-url http://127.0.0.1/", ExitUsage, "notif")
	d.expectFailure("merchant add ShopC --operator sandbox", ExitUsage, "--country")
	d.expectFailure("merchant show Nobody", ExitFailed, "no merchant")
	d.expectFailure("merchant suspend ShopA --yes", ExitUsage, "--reason")
	d.expectFailure("merchant suspend ShopA --yes --reason "+strings.Repeat("x", 501), ExitUsage, "500 bytes")
}

func TestChangeSuspendResume(t *testing.T) {
	d := newTestTool(t)
	shop := d.onboardShop()
	var differences []fieldChange
	d.mustRun("merchant change ShopA --country sn,ci --host b.example --notif-url https://b.example/n"+confirmFlags, &differences)
	var view merchantView
	d.mustRun("merchant show "+shop.ID, &view)
	if joinComma(view.Countries) != "SN, CI" || view.HomeCountry != "SN" || joinComma(view.NotificationHosts) != "b.example" || len(differences) != 4 {
		t.Errorf("%+v after %+v", view, differences)
	}
	d.expectFailure("merchant change ShopA --country sn,ci"+confirmFlags, ExitFailed, "nothing would change")
	d.mustRun("merchant suspend ShopA"+confirmFlags, nil)
	d.mustRun("merchant show ShopA", &view)
	if view.Status != merchant.StatusSuspended || view.Generation != 2 {
		t.Errorf("suspended: %+v", view)
	}
	d.mustRun("merchant resume ShopA"+confirmFlags, nil)
	var all []merchantView
	d.mustRun("merchant list", &all)
	if len(all) != 1 || all[0].Status != merchant.StatusActive {
		t.Errorf("list: %+v", all)
	}
}

func TestHosts(t *testing.T) {
	d := newTestTool(t)
	d.onboardShop()
	d.expectFailure("host add ShopA 10.0.0.1"+confirmFlags, ExitUsage, "10.0.0.1")
	d.expectFailure("host add ShopA 127.0.0.1:8080"+confirmFlags, ExitUsage, "127.0.0.1")
	d.expectFailure("host add ShopA shop.example"+confirmFlags, ExitFailed, "nothing would change")
	d.expectFailure("host remove ShopA shop.example"+confirmFlags, ExitUsage, "notif_url")
	d.mustRun("host add ShopA b.example c.example:8443"+confirmFlags, nil)
	d.mustRun("host remove ShopA b.example"+confirmFlags, nil)
	var hosts []string
	d.mustRun("host list ShopA", &hosts)
	if joinComma(hosts) != "shop.example, c.example:8443" {
		t.Errorf("hosts: %q", hosts)
	}
}

func TestAudit(t *testing.T) {
	d := newTestTool(t)
	d.onboardShop()
	d.now = d.now.Add(48 * time.Hour)
	d.audit.outcomes = nil
	d.mustRun("merchant suspend ShopA"+confirmFlags, nil)
	if joinComma(d.audit.outcomes) != "started, done" {
		t.Errorf("halves: %v", d.audit.outcomes)
	}
	d.now = d.now.Add(time.Second)
	d.audit.failAt = OutcomeStarted
	d.expectFailure("merchant resume ShopA"+confirmFlags, ExitFailed, "nothing was changed")
	d.audit.failAt = OutcomeDone
	d.expectFailure("merchant resume ShopA"+confirmFlags, ExitFailed, "could not be completed")
	d.audit.failAt = ""
	var records []Record
	d.mustRun("audit --subject shopa --since 2026-03-03", &records)
	if len(records) != 2 || records[0].What != "suspend a merchant" || records[1].Outcome != OutcomeStarted {
		t.Errorf("records: %+v", records)
	}
	d.expectFailure("audit --since yesterday", ExitUsage, "day")
}

func TestCredentials(t *testing.T) {
	for _, kind := range []string{"token", "client-secret"} {
		t.Run(kind, func(t *testing.T) {
			d := newTestTool(t)
			shop := d.onboardShop()
			var second, third issuedCredential
			d.mustRun(kind+" issue ShopA"+confirmFlags, &second)
			if second.Number != 2 || !strings.Contains(second.Secret, shop.ID) {
				t.Fatalf("issued: %+v", second)
			}
			for _, r := range d.audit.records {
				if strings.HasPrefix(r.What, "issue") && r.Detail != "number 2" {
					t.Errorf("detail: %q", r.Detail)
				}
			}
			d.now = d.now.Add(time.Second)
			d.expectFailure(kind+" issue ShopA"+confirmFlags, ExitFailed, "two are live")
			d.expectFailure(kind+" rotate ShopA"+confirmFlags, ExitFailed, "--force")
			d.mustRun(kind+" rotate ShopA --force --overlap 1h"+confirmFlags, &third)
			if !slices.ContainsFunc(slices.Collect(maps.Values(d.audit.records)), func(r Record) bool {
				return r.Detail == "number 3; 2 ends at 2026-03-01T13:00:01Z"
			}) {
				t.Errorf("details: %+v", d.audit.records)
			}
			if third.Number != 3 || len(third.EndingNumbers) != 1 || third.EndingNumbers[0] != 2 || !third.EndAt.Equal(d.now.Add(time.Hour)) {
				t.Errorf("rotated: %+v", third)
			}
			var views []credentialView
			d.mustRun(kind+" list ShopA", &views)
			if len(views) != 2 || !views[0].Live || !views[1].Live {
				t.Errorf("in the overlap: %+v", views)
			}
			d.now = d.now.Add(time.Hour)
			d.mustRun(kind+" list ShopA", &views)
			if views[0].Live || !views[1].Live {
				t.Errorf("after the overlap: %+v", views)
			}
			d.mustRun(kind+" revoke ShopA 3"+confirmFlags, nil)
			views = nil
			d.mustRun(kind+" list ShopA", &views)
			if views[1].Live {
				t.Errorf("revoked: %+v", views)
			}
			d.expectFailure(kind+" revoke ShopA 9"+confirmFlags, ExitFailed, "no credential")
			d.expectFailure(kind+" revoke ShopA"+confirmFlags, ExitUsage, "number")
			d.expectFailure(kind+" revoke ShopA 3 --after=-1s"+confirmFlags, ExitUsage, "--after")
			d.now = d.now.Add(time.Second)
			d.mustRun(kind+" issue ShopA"+confirmFlags, nil)
			d.mustRun(kind+" revoke ShopA 4 --after 2h"+confirmFlags, nil)
			views = nil
			if d.mustRun(kind+" list ShopA", &views); !views[len(views)-1].Expires.Equal(d.now.Add(2 * time.Hour)) {
				t.Errorf("revoked in two hours: %+v", views)
			}
		})
	}
}

func TestWebhookSecrets(t *testing.T) {
	d := newTestTool(t)
	shop := d.onboardShop()
	var first, second, shown webhookSecretOutput
	d.mustRun("webhook-secret show ShopA"+confirmFlags, &first)
	if first.Secret != shop.WebhookSecret {
		t.Error("show gave another secret than the onboarding")
	}
	d.mustRun("keys add webhooks"+confirmFlags, nil)
	d.now = d.now.Add(5 * time.Minute)
	d.mustRun("webhook-secret rotate ShopA"+confirmFlags, &second)
	d.mustRun("webhook-secret show ShopA 1"+confirmFlags, &shown)
	if second.Version != 2 || second.Secret == first.Secret || shown.Secret != first.Secret {
		t.Errorf("rotated: %+v, then %+v", second, shown)
	}
	var views []webhookView
	d.mustRun("webhook-secret list ShopA", &views)
	if len(views) != 2 || views[0].KeyNumber != 2 {
		t.Errorf("list: %+v", views)
	}
	d.expectFailure("webhook-secret rotate ShopA"+confirmFlags, ExitFailed, "two are live")
	d.mustRun("webhook-secret revoke ShopA 1"+confirmFlags, nil)
	d.expectFailure("webhook-secret show ShopA 1"+confirmFlags, ExitFailed, "no credential")
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
			var shown webhookSecretOutput
			if !strings.Contains(line, "rotate") {
				d.mustRun(line+confirmFlags, nil)
				continue
			}
			if d.mustRun(line+confirmFlags, &shown); shown.Secret == "" || seen[shown.Secret] {
				t.Errorf("%s: version %d was issued before", line, shown.Version)
			}
			seen[shown.Secret] = true
		}
	}
}

// Without a secret nothing is sent: the tool says so before and after, and wants to be told.
func TestRevokingTheLastWebhookSecret(t *testing.T) {
	d := newTestTool(t)
	d.onboardShop()
	for _, hand := range []string{"", confirmFlags} {
		d.expectFailure("webhook-secret revoke ShopA 1"+hand, ExitFailed, "rotate first")
	}
	for _, hand := range []string{"", confirmFlags} {
		code, _, notes := d.run("webhook-secret revoke ShopA 1 --last" + hand)
		for _, want := range []string{"no notification", "unsigned", "webhook-secret rotate"} {
			if code != ExitDone || !strings.Contains(notes, want) {
				t.Errorf("%q: exit %d, %s lacks %q", hand, code, notes, want)
			}
		}
	}
}

func TestRevokeNeedsTokenNumber(t *testing.T) {
	d := newTestTool(t)
	d.onboardShop()
	before := len(d.audit.records)
	for _, words := range []string{"1 --short-lived", "--short-lived --after 1h", "1 --short-lived --after 1h", "--after=0s --short-lived"} {
		d.expectFailure("token revoke ShopA "+words+confirmFlags, ExitUsage, "--short-lived")
	}
	var view merchantView
	if d.mustRun("merchant show ShopA", &view); !view.Tokens[0].Live || !view.Tokens[0].Expires.IsZero() || view.Generation != 1 || len(d.audit.records) != before {
		t.Errorf("a refused command did something: %+v", view)
	}
	d.mustRun("token revoke ShopA --short-lived"+confirmFlags, nil)
}

func TestSuspendingTwice(t *testing.T) {
	d := newTestTool(t)
	d.onboardShop()
	d.expectFailure("merchant resume ShopA"+confirmFlags, ExitFailed, "nothing would change")
	d.mustRun("merchant suspend ShopA"+confirmFlags, nil)
	for _, hand := range []string{"", confirmFlags} {
		d.expectFailure("merchant suspend ShopA"+hand, ExitFailed, "nothing would change")
	}
	var view merchantView
	if d.mustRun("merchant show ShopA", &view); view.Generation != 2 {
		t.Errorf("%+v", view)
	}
}

func TestBlankReasons(t *testing.T) {
	d := newTestTool(t)
	d.onboardShop()
	for _, why := range []string{"", "   ", "\t\n", "\u00a0"} {
		if code, _, notes := d.runArguments("merchant", "suspend", "ShopA", "--yes", "--reason", why); code != ExitUsage || !strings.Contains(notes, "--reason") {
			t.Errorf("%q: exit %d, %s", why, code, notes)
		}
	}
	if code, _, notes := d.runArguments("merchant", "suspend", "ShopA", "--yes", "--reason", "  a stolen laptop \n"); code != ExitDone {
		t.Fatal(code, notes)
	}
	var records []Record
	d.mustRun("audit --subject ShopA", &records)
	if !slices.ContainsFunc(records, func(r Record) bool { return r.Why == "a stolen laptop" }) {
		t.Errorf("%+v", records)
	}
}

// What failed is recorded with its cause.
func TestAuditRecordsFailureCause(t *testing.T) {
	d := newTestTool(t)
	d.onboardShop()
	d.connect = func(System, Deployment) (*Stores, error) {
		stores := d.storesWith(d.ledger)
		stores.Merchants = failingRegistry{stores.Merchants}
		return stores, nil
	}
	d.expectFailure("merchant suspend ShopA"+confirmFlags, ExitFailed, "the table does not answer")
	var records []Record
	d.mustRun("audit --subject ShopA", &records)
	i := slices.IndexFunc(records, func(r Record) bool { return r.What == "suspend a merchant" })
	if last := records[i]; last.Outcome != OutcomeFailed || !strings.Contains(last.Detail, "active -> suspended") ||
		!strings.Contains(last.Detail, "failed: the table does not answer") || len(last.Detail) > 2000 {
		t.Errorf("%+v", last)
	}
}

// failingRegistry is a registry that can be read alone.
type failingRegistry struct{ merchant.Registry }

// Update implements merchant.Registry.
func (failingRegistry) Update(context.Context, *merchant.Profile) error {
	return errors.New("the table does not answer " + strings.Repeat("x", 5000))
}
