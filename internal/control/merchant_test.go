package control

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

func TestADryRunChangesNothing(t *testing.T) {
	d := newDesk(t)
	shop := d.shop()
	d.payment(shop, 1, d.now)
	d.input = `{"sandbox":{"current":"a","accounts":{"a":{"base_url":"https://o.example","access_token":"t"}}}}`
	puts, records := d.vault.puts, len(d.audit.records)
	before, _ := d.merchants.Profile(t.Context(), shop.ID)
	for _, line := range []string{
		"merchant add ShopB --country ci --operator sandbox", "merchant change ShopA --country ci,sn", "merchant suspend ShopA", "host add ShopA b.example",
		"token issue ShopA", "token rotate ShopA", "token revoke ShopA 1", "token revoke ShopA --short", "client-secret issue ShopA",
		"client-secret rotate ShopA", "client-secret revoke ShopA 1", "webhook-secret show ShopA", "webhook-secret rotate ShopA",
		"webhook-secret revoke ShopA 1 --last", "keys add tokens", "operator set -", "deliveries replay --id ShopA_1",
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
	if d.vault.puts != puts || len(d.audit.records) != records || d.ledger.Calls("Replace") != 0 {
		t.Error("a dry run wrote something")
	}
}

// What the real run would make anew is not shown as if it stood.
func TestADryRunShowsNoID(t *testing.T) {
	d := newDesk(t)
	d.do("keys add webhooks"+yes, nil)
	var made onboarded
	d.do("merchant add ShopA --country ci --operator sandbox", &made)
	if made.ID != "(shown with --yes)" || made.ClientID != made.ID {
		t.Errorf("%+v", made)
	}
	_, out, notes := d.run("merchant add ShopA --country ci --operator sandbox")
	for line := range strings.Lines(out + notes) {
		word := strings.Fields(line)
		if strings.Contains(line, "id ") && !strings.Contains(line, "(shown with --yes)") {
			t.Errorf("%q", word)
		}
	}
	d.do("merchant add ShopA --country ci --operator sandbox"+yes, &made)
	profile, err := d.merchants.Profile(t.Context(), made.ID)
	if err != nil || profile == nil || made.ClientID != made.ID {
		t.Errorf("the real run: %+v, %v", made, err)
	}
}

func TestOnboarding(t *testing.T) {
	d := newDesk(t)
	d.refused("merchant add ShopA --country ci --operator sandbox"+yes, ExitFailed, "keys add webhooks")
	shop := d.shop()
	if !merchant.ClientSecretFits(shop.ClientID, shop.ClientSecret) || !strings.HasPrefix(shop.AccessToken, "gwl_"+shop.ID+"_") ||
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
	d.refused("merchant add SHOPA --country ci --operator sandbox", ExitFailed, "taken")
	d.refused("merchant add Shop-A --country ci --operator sandbox", ExitUsage, "letters and digits")
	d.refused("merchant add ShopC --country ci --operator nobody", ExitUsage, `"nobody"`)
	d.refused("merchant add ShopC --country fr --operator sandbox", ExitUsage, `"FR"`)
	d.refused("merchant add ShopC --country ci --operator sandbox --notif-url http://127.0.0.1/", ExitUsage, "notif")
	d.refused("merchant add ShopC --operator sandbox", ExitUsage, "--country")
	d.refused("merchant show Nobody", ExitFailed, "no merchant")
	d.refused("merchant suspend ShopA --yes", ExitUsage, "--why")
	d.refused("merchant suspend ShopA --yes --why "+strings.Repeat("x", 501), ExitUsage, "500 bytes")
}

func TestChangeSuspendResume(t *testing.T) {
	d := newDesk(t)
	shop := d.shop()
	var differences []difference
	d.do("merchant change ShopA --country sn,ci --host b.example --notif-url https://b.example/n"+yes, &differences)
	var view merchantView
	d.do("merchant show "+shop.ID, &view)
	if list(view.Countries) != "SN, CI" || view.HomeCountry != "SN" || list(view.NotificationHosts) != "b.example" || len(differences) != 4 {
		t.Errorf("%+v after %+v", view, differences)
	}
	d.refused("merchant change ShopA --country sn,ci"+yes, ExitFailed, "nothing would be different")
	d.do("merchant suspend ShopA"+yes, nil)
	d.do("merchant show ShopA", &view)
	if view.Status != merchant.StatusSuspended || view.Generation != 2 {
		t.Errorf("suspended: %+v", view)
	}
	d.do("merchant resume ShopA"+yes, nil)
	var all []merchantView
	d.do("merchant list", &all)
	if len(all) != 1 || all[0].Status != merchant.StatusActive {
		t.Errorf("list: %+v", all)
	}
}

func TestHosts(t *testing.T) {
	d := newDesk(t)
	d.shop()
	d.refused("host add ShopA 10.0.0.1"+yes, ExitUsage, "10.0.0.1")
	d.refused("host add ShopA 127.0.0.1:8080"+yes, ExitUsage, "127.0.0.1")
	d.refused("host add ShopA shop.example"+yes, ExitFailed, "nothing would be different")
	d.refused("host remove ShopA shop.example"+yes, ExitUsage, "notif_url")
	d.do("host add ShopA b.example c.example:8443"+yes, nil)
	d.do("host remove ShopA b.example"+yes, nil)
	var hosts []string
	d.do("host list ShopA", &hosts)
	if list(hosts) != "shop.example, c.example:8443" {
		t.Errorf("hosts: %q", hosts)
	}
}

func TestAudit(t *testing.T) {
	d := newDesk(t)
	d.shop()
	d.now = d.now.Add(48 * time.Hour)
	d.audit.halves = nil
	d.do("merchant suspend ShopA"+yes, nil)
	if list(d.audit.halves) != "begun, done" {
		t.Errorf("halves: %v", d.audit.halves)
	}
	d.now = d.now.Add(time.Second)
	d.audit.failAt = OutcomeBegun
	d.refused("merchant resume ShopA"+yes, ExitFailed, "nothing was changed")
	d.audit.failAt = OutcomeDone
	d.refused("merchant resume ShopA"+yes, ExitFailed, "could not be completed")
	d.audit.failAt = ""
	var records []Record
	d.do("audit --subject shopa --since 2026-03-03", &records)
	if len(records) != 2 || records[0].What != "suspend a merchant" || records[1].Outcome != OutcomeBegun {
		t.Errorf("records: %+v", records)
	}
	d.refused("audit --since yesterday", ExitUsage, "day")
}

func TestCredentials(t *testing.T) {
	for _, kind := range []string{"token", "client-secret"} {
		t.Run(kind, func(t *testing.T) {
			d := newDesk(t)
			shop := d.shop()
			var second, third issued
			d.do(kind+" issue ShopA"+yes, &second)
			if second.Number != 2 || !strings.Contains(second.Secret, shop.ID) {
				t.Fatalf("issued: %+v", second)
			}
			for _, r := range d.audit.records {
				if strings.HasPrefix(r.What, "issue") && r.Detail != "number 2" {
					t.Errorf("detail: %q", r.Detail)
				}
			}
			d.now = d.now.Add(time.Second)
			d.refused(kind+" issue ShopA"+yes, ExitFailed, "two are live")
			d.refused(kind+" rotate ShopA"+yes, ExitFailed, "--force")
			d.do(kind+" rotate ShopA --force --overlap 1h"+yes, &third)
			if !slices.ContainsFunc(slices.Collect(maps.Values(d.audit.records)), func(r Record) bool {
				return r.Detail == "number 3; 2 ends at 2026-03-01T13:00:01Z"
			}) {
				t.Errorf("details: %+v", d.audit.records)
			}
			if third.Number != 3 || len(third.Ended) != 1 || third.Ended[0] != 2 || !third.EndAt.Equal(d.now.Add(time.Hour)) {
				t.Errorf("rotated: %+v", third)
			}
			var views []credentialView
			d.do(kind+" list ShopA", &views)
			if len(views) != 2 || !views[0].Live || !views[1].Live {
				t.Errorf("in the overlap: %+v", views)
			}
			d.now = d.now.Add(time.Hour)
			d.do(kind+" list ShopA", &views)
			if views[0].Live || !views[1].Live {
				t.Errorf("after the overlap: %+v", views)
			}
			d.do(kind+" revoke ShopA 3"+yes, nil)
			views = nil
			d.do(kind+" list ShopA", &views)
			if views[1].Live {
				t.Errorf("revoked: %+v", views)
			}
			d.refused(kind+" revoke ShopA 9"+yes, ExitFailed, "no credential")
			d.refused(kind+" revoke ShopA"+yes, ExitUsage, "number")
			d.refused(kind+" revoke ShopA 3 --in=-1s"+yes, ExitUsage, "--in")
			d.now = d.now.Add(time.Second)
			d.do(kind+" issue ShopA"+yes, nil)
			d.do(kind+" revoke ShopA 4 --in 2h"+yes, nil)
			views = nil
			if d.do(kind+" list ShopA", &views); !views[len(views)-1].Expires.Equal(d.now.Add(2 * time.Hour)) {
				t.Errorf("revoked in two hours: %+v", views)
			}
		})
	}
}

func TestWebhookSecrets(t *testing.T) {
	d := newDesk(t)
	shop := d.shop()
	var first, second, shown shownWebhook
	d.do("webhook-secret show ShopA"+yes, &first)
	if first.Secret != shop.WebhookSecret {
		t.Error("show gave another secret than the onboarding")
	}
	d.do("keys add webhooks"+yes, nil)
	d.now = d.now.Add(5 * time.Minute)
	d.do("webhook-secret rotate ShopA"+yes, &second)
	d.do("webhook-secret show ShopA --version 1"+yes, &shown)
	if second.Version != 2 || second.Secret == first.Secret || shown.Secret != first.Secret {
		t.Errorf("rotated: %+v, then %+v", second, shown)
	}
	var views []webhookView
	d.do("webhook-secret list ShopA", &views)
	if len(views) != 2 || views[0].KeyNumber != 2 {
		t.Errorf("list: %+v", views)
	}
	d.refused("webhook-secret rotate ShopA"+yes, ExitFailed, "two are live")
	d.do("webhook-secret revoke ShopA 1"+yes, nil)
	d.refused("webhook-secret show ShopA --version 1"+yes, ExitFailed, "no credential")
}

// A revoked secret is never issued again.
func TestARevokedWebhookSecretStaysRevoked(t *testing.T) {
	d := newDesk(t)
	seen := map[string]bool{d.shop().WebhookSecret: true}
	for _, lines := range [][]string{
		{"webhook-secret rotate ShopA", "webhook-secret revoke ShopA 2", "webhook-secret rotate ShopA"},
		{"webhook-secret revoke ShopA 1", "webhook-secret revoke ShopA 3 --last", "webhook-secret rotate ShopA"},
	} {
		for _, line := range lines {
			var shown shownWebhook
			if !strings.Contains(line, "rotate") {
				d.do(line+yes, nil)
				continue
			}
			if d.do(line+yes, &shown); shown.Secret == "" || seen[shown.Secret] {
				t.Errorf("%s: version %d was issued before", line, shown.Version)
			}
			seen[shown.Secret] = true
		}
	}
}

// Without a secret nothing is sent: the tool says so before and after, and wants to be told.
func TestRevokingTheLastWebhookSecret(t *testing.T) {
	d := newDesk(t)
	d.shop()
	for _, hand := range []string{"", yes} {
		d.refused("webhook-secret revoke ShopA 1"+hand, ExitFailed, "rotate first")
	}
	for _, hand := range []string{"", yes} {
		code, _, notes := d.run("webhook-secret revoke ShopA 1 --last" + hand)
		for _, want := range []string{"no notification", "unsigned", "webhook-secret rotate"} {
			if code != ExitDone || !strings.Contains(notes, want) {
				t.Errorf("%q: exit %d, %s lacks %q", hand, code, notes, want)
			}
		}
	}
}

func TestWhichTokenToRevoke(t *testing.T) {
	d := newDesk(t)
	d.shop()
	before := len(d.audit.records)
	for _, words := range []string{"1 --short", "--short --in 1h", "1 --short --in 1h", "--in=0s --short"} {
		d.refused("token revoke ShopA "+words+yes, ExitUsage, "--short")
	}
	var view merchantView
	if d.do("merchant show ShopA", &view); !view.Tokens[0].Live || !view.Tokens[0].Expires.IsZero() || view.Generation != 1 || len(d.audit.records) != before {
		t.Errorf("a refused command did something: %+v", view)
	}
	d.do("token revoke ShopA --short"+yes, nil)
}

func TestSuspendingTwice(t *testing.T) {
	d := newDesk(t)
	d.shop()
	d.refused("merchant resume ShopA"+yes, ExitFailed, "nothing would be different")
	d.do("merchant suspend ShopA"+yes, nil)
	for _, hand := range []string{"", yes} {
		d.refused("merchant suspend ShopA"+hand, ExitFailed, "nothing would be different")
	}
	var view merchantView
	if d.do("merchant show ShopA", &view); view.Generation != 2 {
		t.Errorf("%+v", view)
	}
}

func TestBlankReasons(t *testing.T) {
	d := newDesk(t)
	d.shop()
	for _, why := range []string{"", "   ", "\t\n", "\u00a0"} {
		if code, _, notes := d.words("merchant", "suspend", "ShopA", "--yes", "--why", why); code != ExitUsage || !strings.Contains(notes, "--why") {
			t.Errorf("%q: exit %d, %s", why, code, notes)
		}
	}
	if code, _, notes := d.words("merchant", "suspend", "ShopA", "--yes", "--why", "  a stolen laptop \n"); code != ExitDone {
		t.Fatal(code, notes)
	}
	var records []Record
	d.do("audit --subject ShopA", &records)
	if !slices.ContainsFunc(records, func(r Record) bool { return r.Why == "a stolen laptop" }) {
		t.Errorf("%+v", records)
	}
}

// What failed is recorded with its cause.
func TestTheAuditTellsWhyItFailed(t *testing.T) {
	d := newDesk(t)
	d.shop()
	d.connect = func(System, Places) (*Stores, error) {
		stores := d.stores(d.ledger)
		stores.Merchants = stubborn{stores.Merchants}
		return stores, nil
	}
	d.refused("merchant suspend ShopA"+yes, ExitFailed, "the table does not answer")
	var records []Record
	d.do("audit --subject ShopA", &records)
	i := slices.IndexFunc(records, func(r Record) bool { return r.What == "suspend a merchant" })
	if last := records[i]; last.Outcome != OutcomeFailed || !strings.Contains(last.Detail, "active -> suspended") ||
		!strings.Contains(last.Detail, "failed: the table does not answer") || len(last.Detail) > 2000 {
		t.Errorf("%+v", last)
	}
}

// stubborn is a registry that can be read alone.
type stubborn struct{ merchant.Registry }

// Update implements merchant.Registry.
func (stubborn) Update(context.Context, *merchant.Profile) error {
	return errors.New("the table does not answer " + strings.Repeat("x", 5000))
}
