package gatewayctl_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
)

// With --json the standard output is one JSON document, also after an error.
func TestErrorsAreJSONToo(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	for _, c := range []struct {
		line  string
		usage bool
		want  string
	}{
		{"merchant show ShopX", false, `there is no merchant "ShopX"`},
		{"merchant paint", true, "paint"},
		{"merchant show ShopA --paint", true, "paint"},
		{"merchant suspend ShopA --yes", true, "--reason"},
		{"list ShopA --day soon", true, "soon"},
		{"merchant list --local", true, "no local run"},
		{"export ShopA --from 2026-03-01 --to 2026-03-01 --cursor x", true, "cursor"},
	} {
		code, out, stderr := d.Exec("--json " + c.line)
		var document map[string]any
		if err := json.Unmarshal([]byte(out), &document); err != nil {
			t.Errorf("%s: %v in %q", c.line, err, out)
			continue
		}
		text, _ := document["error"].(string)
		if len(document) != 2 || document["usage"] != c.usage || !strings.Contains(text, c.want) ||
			strings.HasPrefix(text, "usage") {
			t.Errorf("%s: %v", c.line, document)
		}
		if (code == gatewayctl.ExitUsage) != c.usage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %s", c.line, code, stderr)
		}
		if _, out, _ := d.Exec(c.line); out != "" {
			t.Errorf("%s, without --json: %q", c.line, out)
		}
	}
}

// A defect of the tool ends it with its trace, never with the exit code of a command that succeeded.
func TestPanicIsNotSuccess(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	d.ChangeStores(func(*deployment.Stores) { panic("a defect") })
	defer func() {
		if recovered := recover(); recovered != "a defect" {
			t.Errorf("recovered %v, want the defect", recovered)
		}
	}()
	code, out, _ := d.Exec("merchant list")
	t.Errorf("exit %d, output %q", code, out)
}

// lateSecrets is a secret store whose response does not come in time.
type lateSecrets struct{ deployment.SecretStore }

func (lateSecrets) Get(context.Context, string) (deployment.StoredSecret, error) {
	return deployment.StoredSecret{}, context.DeadlineExceeded
}

// lateLedger is a ledger whose response does not come in time.
type lateLedger struct{ deployment.Ledger }

func (lateLedger) Day(context.Context, ledger.DayQuery) ([]ledger.DayKey, string, error) {
	return nil, "", context.DeadlineExceeded
}

// noFaults is an error that is a nil slice.
type noFaults []error

func (noFaults) Error() string { return "deadline exceeded" }

// A provider gives a command what it needs. If its error is a struct, as that of a deadline is, the parser panics. An
// error that is a nil slice is none for the parser.
func TestErrorOfAProviderIsAFailure(t *testing.T) {
	fails := func(err error) func(*gatewayctltest.Tool) {
		return func(d *gatewayctltest.Tool) {
			d.Connect = func(deployment.System, deployment.Names) (*deployment.Stores, error) { return nil, err }
		}
	}
	late := func(d *gatewayctltest.Tool) {
		d.ChangeStores(func(s *deployment.Stores) {
			s.Ledger, s.Secrets = lateLedger{s.Ledger}, lateSecrets{s.Secrets}
		})
	}
	lines := map[string]string{
		"session Flags.ProvideMerchants": "merchant list", "session MerchantArgument.ProvideProfile": "host list ShopA",
		"keys RingArgument.ProvideRing": "keys list tokens", "attention Waiting.ProvideAttention": "attention",
		"accounts Commands.ProvideCredentials":        "operator list",
		"merchants WebhookSecrets.ProvideRing":        "webhook-secret show ShopA",
		"merchants endpointSelection.ProvideSelected": "endpoint enable ShopA",
	}
	for provider, line := range lines {
		for name, fail := range map[string]func(*gatewayctltest.Tool){
			"a struct": fails(context.DeadlineExceeded), "a nil slice": fails(noFaults(nil)), "late": late,
		} {
			if name == "late" && strings.HasPrefix(provider, "session") {
				continue // these read neither the ledger nor a secret
			}
			t.Run(provider+", "+name, func(t *testing.T) {
				d, _ := gatewayctltest.NewShop(t)
				fail(d)
				d.ExpectExit(line+" --yes --reason drill", gatewayctl.ExitFailed, "deadline exceeded")
			})
		}
	}
	all := slices.AppendSeq([]string{ // these read nothing
		"merchants ClientSecrets.ProvideKind", "merchants Tokens.ProvideKind", "slots Commands.ProvideClient",
	}, maps.Keys(lines))
	slices.Sort(all)
	gatewayctltest.Equal(t, "the providers of all commands", providersInSource(t), all)
}

// providersInSource lists the methods that kong takes as providers: "<package> <type>.<method>".
func providersInSource(t *testing.T) (providers []string) {
	declared := regexp.MustCompile(`(?m)^func \((?:\w+ )?\*?(\w+)\) (Provide\w+)\(`)
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, method := range declared.FindAllStringSubmatch(gatewayctltest.ReadFile(t, file), -1) {
			providers = append(providers, filepath.Dir(file)+" "+method[1]+"."+method[2])
		}
	}
	slices.Sort(providers)
	return providers
}

// A result that was written before the failure is the only document.
func TestPartialOutputIsNotFollowedByErrorJSON(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	d.UseSandboxOperator()
	results, stderr := gatewayctltest.QueryExit[[]accounts.OperationCheck](d, "operator check --timeout 1s",
		gatewayctl.ExitFailed)
	if len(results) != 4 || !strings.Contains(stderr, "nothing shows that its credentials are wrong") {
		t.Errorf("%+v, %s", results, stderr)
	}
}

// No dry run reads as done, whether it would succeed or fail. It changes nothing, and shows no unissued secret.
func TestDryRunsSayWould(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.UseSandboxOperator()
	d.Apply("keys add tokens", "keys add tokens", "keys add callbacks")
	d.Now = d.Now.Add(26 * time.Hour)
	const disabled = gatewayctltest.ShopURL + "/disabled"
	d.AddWaitingPayment(shop, 1)
	d.AddWaitingPayment(shop, 2, func(e *ledger.Entry) { e.Outbox.URL = "https://elsewhere.example/n" })
	d.AddWaitingPayment(shop, 3, func(e *ledger.Entry) { e.Outbox.Waiting[0].DeadReason = "server" })
	d.AddWaitingPayment(shop, 4, func(e *ledger.Entry) { e.Outbox.URL = disabled; e.Outbox.Park(d.Now) })
	at := webhook.Endpoint{MerchantID: shop.ID, URL: disabled}
	d.Health.StoreHealth(webhook.Health{Endpoint: at, DisabledAt: d.Now})
	d.AddPendingPayment(shop, 5, d.Now, func(e *ledger.Entry) { e.State = ledger.Unknown })
	charge, sms := d.AddUnknownCharge(shop, "c1"), d.AddUnknownSMS(shop, "m1")
	d.Input = gatewayctltest.CredentialsOf(t, "sandbox", "a2",
		gatewayctltest.NewAccount(t, "sandbox", "https://o.example", "t"))
	writes := func() []int {
		ids, idsErr := d.Merchants.IDs(t.Context())
		profile, err := d.Merchants.Profile(t.Context(), shop.ID)
		if err = errors.Join(err, idsErr); err != nil {
			t.Fatal(err)
		}
		return []int{len(ids), int(profile.Version), d.Vault.Puts, len(d.Audit.Stored), d.Health.WriteCount(),
			d.Ledger.CallCount("Replace")}
	}
	before := writes()
	for _, line := range []string{
		"merchant add ShopB --country ci --operator sandbox", "merchant change ShopA --country ci,sn",
		"merchant suspend ShopA", "host add ShopA b.example",
		"token issue ShopA", "token rotate ShopA", "token revoke ShopA 1", "token revoke ShopA --short-lived",
		"client-secret issue ShopA", "client-secret rotate ShopA", "client-secret revoke ShopA 1",
		"webhook-secret show ShopA", "webhook-secret rotate ShopA", "webhook-secret revoke ShopA 1 --last",
		"webhook test --merchant ShopA", "keys add tokens", "keys retire tokens 1",
		"keys revoke tokens 1 --compromised", "keys revoke callbacks 1 --compromised",
		"keys revoke webhooks 1 --compromised", "operator set -", "operator route set sandbox ci pay --to sandbox/a1",
		"endpoint disable ShopA --url " + gatewayctltest.ShopURL, "endpoint enable ShopA --url " + disabled,
		"deliveries send ShopA_1", "deliveries replay ShopA_3", "attention close pay ShopA_3",
		"unknown resolve pay ShopA_5 --as successful", "unknown resolve charge " + charge.ID + " --as not-applied",
		"unknown resolve sms " + sms.ID + " --as applied", "deliveries send --merchant ShopA --since 2026-03-01",
	} {
		code, out, stderr := d.Exec(line)
		isRefused := strings.Contains(line, "--since") // the addresses of two transactions
		if !strings.HasPrefix(out, "With --yes this would be:\n") || (code == gatewayctl.ExitFailed) != isRefused ||
			strings.Contains(stderr, "Dry run: this would ") == isRefused {
			t.Errorf("%s: exit %d; %s%s", line, code, out, stderr)
		}
		for _, secret := range []string{"gwl_", "gwc_", "whsec_"} {
			if strings.Contains(out+stderr, secret) {
				t.Errorf("%s shows a secret that is not issued: %s%s", line, out, stderr)
			}
		}
		if _, out, _ := d.Exec(line + " --json"); !json.Valid([]byte(out)) {
			t.Errorf("%s: not JSON: %s", line, out)
		}
		d.Equal("writes after the dry run of "+line, writes(), before)
	}
}

// The lists of a merchant's days have one default: today.
func TestListsOfToday(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.AddDeliveredPayment(shop, 1, d.Now.Add(-session.Day))
	d.AddDeliveredPayment(shop, 2, d.Now)
	for _, list := range []string{"list ShopA", "deliveries list ShopA"} {
		d.ExpectOutput(list, "ShopA_2")
		d.ExpectWithout(list, gatewayctl.ExitDone, "ShopA_1")
	}
}

// No output and no audit record has the query of a URL. The masked form selects the URL again.
func TestSecretsInURLsAreMasked(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	const secret, address = "s3cret-in-a-query", "https://shop.example/n?key=s3cret-in-a-query"
	e := d.AddWaitingPayment(shop, 1, func(e *ledger.Entry) { e.Outbox.URL = address })
	for _, line := range []string{
		"merchant change ShopA --notif-url " + address + gatewayctltest.Confirm, "merchant show ShopA", "show " + e.ID,
		"deliveries show " + e.ID, "endpoint list ShopA", "endpoint show ShopA --url " + address,
		"endpoint disable ShopA --url " + address + gatewayctltest.Confirm, "attention",
		"deliveries send " + e.ID + gatewayctltest.Confirm,
		"endpoint enable ShopA --url https://shop.example/n?***" + gatewayctltest.Confirm,
		"list ShopA", "audit", "export ShopA --from 2026-03-01 --to 2026-03-02",
	} {
		for _, flags := range []string{"", " --json"} {
			code, out, stderr := d.Exec(line + flags)
			if strings.Contains(out+stderr, secret) {
				t.Errorf("%s: exit %d, %s%s", line+flags, code, out, stderr)
			}
		}
	}
	for _, r := range d.Audit.Records {
		if strings.Contains(r.Subject+r.Why+r.Detail, secret) {
			t.Errorf("the audit record has the query: %+v", r)
		}
	}
	if at := gatewayctltest.Query[merchants.EndpointView](d,
		"endpoint show ShopA --url https://shop.example/n?***"); !at.Enabled {
		t.Errorf("the endpoint is %+v, want it enabled again by its masked URL", at)
	}
}

// Each flag of a day takes yesterday and today, which are UTC days.
func TestNamedDays(t *testing.T) {
	d := gatewayctltest.New(t)
	d.AddDeliveredPayment(d.Onboard("ShopA"), 1, d.Now)
	d.Now = d.Now.Add(session.Day)
	for line, found := range map[string]string{
		"find ShopA_1 --since yesterday":                                 "2026-03-01 on",
		"find ShopA_1 --since today":                                     "2026-03-02 on",
		"list ShopA --day yesterday":                                     "ShopA_1",
		"list ShopA --from yesterday --to today":                         "ShopA_1",
		"deliveries list ShopA --from yesterday --to yesterday":          "ShopA_1",
		"deliveries replay --merchant ShopA --from yesterday --to today": "1",
		"audit --since yesterday":                                        "add a merchant",
		"endpoint list ShopA --since yesterday":                          "https://",
	} {
		if code, out, stderr := d.Exec(line); code != gatewayctl.ExitDone || !strings.Contains(out+stderr, found) {
			t.Errorf("%s: exit %d, without %q: %s%s", line, code, found, out, stderr)
		}
	}
	d.ExpectExit("deliveries send --merchant ShopA --since yesterday", gatewayctl.ExitFailed, "nothing waits")
	for _, command := range []string{"find ShopA_1", "attention", "audit", "audit verify", "export ShopA"} {
		d.ExpectExit(command+" --since tomorrow", gatewayctl.ExitUsage, "yesterday or today")
		for _, day := range []string{"today", "yesterday"} {
			if code, _, stderr := d.Exec(command + " --since " + day); code == gatewayctl.ExitUsage {
				t.Errorf("%s --since %s: %s", command, day, stderr)
			}
		}
	}
	d.ExpectExit("audit --since", gatewayctl.ExitUsage, "--since")
}

func TestTimeRangesAreConsistent(t *testing.T) {
	d := gatewayctltest.New(t)
	d.AddDeliveredPayment(d.Onboard("ShopA"), 1, d.Now)
	file := filepath.Join(t.TempDir(), "out")
	for _, command := range []string{
		"list ShopA", "deliveries list ShopA", "deliveries replay --merchant ShopA", "unknown list ShopA",
		"export ShopA --output " + file,
	} {
		d.MustRun(command+" --from 2026-03-01 --to 2026-03-01", nil)
		d.ExpectExit(command+" --from 2026-03-02 --to 2026-03-01", gatewayctl.ExitUsage, "not be a day before")
		d.ExpectExit(command+" --from 2026-03-02 --to 2026-3-2", gatewayctl.ExitUsage, "2026-3-2")
		d.ExpectExit(command+" --from 2026-03-02", gatewayctl.ExitUsage, "--to")
	}
	for _, command := range []string{"deliveries list ShopA", "deliveries replay --merchant ShopA"} {
		d.ExpectExit(command+" --from 2026-03-01T12:00:00Z --to 2026-03-01T12:00:00Z", gatewayctl.ExitUsage,
			"range is empty")
	}
}

// TestPrintedExports runs each export that the runbooks print, and compares the columns of its output with those that
// the pages name.
func TestPrintedExports(t *testing.T) {
	runbooks, page := gatewayctltest.ReadFile(t, "../docs/operations.md"),
		gatewayctltest.ReadFile(t, "../docs/gatewayctl.md")
	named := regexp.MustCompile("`([a-z_]+)`")
	_, columns, _ := strings.Cut(page, "\n| Columns | Meaning |\n|---|---|\n")
	columns, _, _ = strings.Cut(columns, "\n\n")
	var documented []string
	for row := range strings.Lines(columns) {
		for _, name := range named.FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			documented = append(documented, name[1])
		}
	}
	gatewayctltest.Equal(t, "the columns in docs/gatewayctl.md", documented, transactions.ExportColumns())
	needed := regexp.MustCompile("[Cc]olumn `([a-z_]+)` of the export")
	for _, column := range needed.FindAllStringSubmatch(runbooks, -1) {
		if !slices.Contains(documented, column[1]) {
			t.Errorf("a runbook needs the column %s, which no export has", column[1])
		}
	}
	lines := regexp.MustCompile(`(?m)^ *gatewayctl (export .*)$`).FindAllStringSubmatch(runbooks, -1)
	if len(lines) < 4 {
		t.Fatalf("the runbooks print %d exports, want at least 4", len(lines))
	}
	t.Chdir(t.TempDir())
	for _, line := range lines {
		d, shop := gatewayctltest.NewShop(t)
		d.AddDeliveredPayment(shop, 1, d.Now)
		command, file, isRedirected := strings.Cut(line[1], " > ")
		code, text, stderr := d.Exec(command)
		if _, output, found := strings.Cut(command, "--output "); found && !isRedirected {
			file, _, _ = strings.Cut(output, " ")
			text = gatewayctltest.ReadFile(t, file)
		}
		heading, _, _ := strings.Cut(text, "\n")
		if code != gatewayctl.ExitDone || heading != strings.Join(documented, ",") {
			t.Errorf("%s: exit %d, %s; the columns of %s are %q", line[1], code, stderr, file, heading)
		}
	}
}
