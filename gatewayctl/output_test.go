package gatewayctl

import (
	"encoding/json"
	"strings"
	"testing"

	"mobilegateway/shared/ledger"
)

// With --json the standard output is one JSON document, also after an error.
func TestErrorsAreJSONToo(t *testing.T) {
	d, _ := newShopTool(t)
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
		code, out, stderr := d.run("--json " + c.line)
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
		if (code == ExitUsage) != c.usage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %s", c.line, code, stderr)
		}
		if _, out, _ := d.run(c.line); out != "" {
			t.Errorf("%s, without --json: %q", c.line, out)
		}
	}
}

// A result that was written before the failure is the only document.
func TestPartialOutputIsNotFollowedByErrorJSON(t *testing.T) {
	d, _ := newShopTool(t)
	d.useSandboxOperator()
	code, out, stderr := d.run("operator check --timeout 1s --json")
	var results []operationCheck
	if err := json.Unmarshal([]byte(out), &results); err != nil || code != ExitFailed || len(results) != 4 ||
		!strings.Contains(stderr, "nothing shows that its credentials are wrong") {
		t.Errorf("exit %d, %v in %q, %s", code, err, out, stderr)
	}
}

// A line that ends before its command gets all commands that can follow, by subject, and the one to begin with.
func TestMissingCommandListsAll(t *testing.T) {
	d := newTestTool(t)
	_, _, all := d.run("")
	_, after, found := strings.Cut(all, "\nWhat waits for a person: begin with gatewayctl attention\n  attention ")
	if !found || !strings.Contains(after, "\n\nMerchants\n  merchant ") {
		t.Errorf("no subjects, or not what waits first: %s", all)
	}
	for _, command := range d.commands {
		if strings.Count(all, "\n  "+command.Name+" ") != 1 {
			t.Errorf("%s is not listed once: %s", command.Name, all)
		}
		for _, below := range command.Children {
			if code, _, stderr := d.run(command.Name); len(command.Children) > 1 && code == ExitUsage &&
				!strings.Contains(stderr, "\n  "+below.Name+" ") {
				t.Errorf("%s: %s is not listed: %s", command.Name, below.Name, stderr)
			}
		}
	}
}

// No dry run reads as done, whether it would succeed or fail.
func TestDryRunsSayWould(t *testing.T) {
	d, shop := newShopTool(t)
	d.addWaitingPayment(shop, 1)
	d.addWaitingPayment(shop, 2, func(e *ledger.Entry) { e.NotifyURL = "https://elsewhere.example/n" })
	for line, code := range map[string]int{
		"merchant suspend ShopA": ExitDone, "token issue ShopA": ExitDone, "keys add tokens": ExitDone,
		"merchant add ShopB --country ci --operator sandbox":  ExitDone,
		"webhook-secret revoke ShopA 1 --last":                ExitDone,
		"endpoint disable ShopA --url " + shopURL:             ExitDone,
		"deliveries send ShopA_1":                             ExitDone,
		"deliveries send --merchant ShopA --since 2026-03-01": ExitFailed,
	} {
		got, out, stderr := d.run(line)
		if got != code || !strings.HasPrefix(out, "With --yes this would be:\n") {
			t.Errorf("%s: exit %d, want %d; %s%s", line, got, code, out, stderr)
		}
		if code == ExitDone && !strings.Contains(stderr, "Dry run: this would ") {
			t.Errorf("%s: %s", line, stderr)
		}
		if _, out, _ := d.run(line + " --json"); !json.Valid([]byte(out)) {
			t.Errorf("%s: not JSON: %s", line, out)
		}
	}
}

// The lists of a merchant's days have one default: today.
func TestListsOfToday(t *testing.T) {
	d, shop := newShopTool(t)
	d.addDeliveredPayment(shop, 1, d.now.Add(-day))
	d.addDeliveredPayment(shop, 2, d.now)
	for _, list := range []string{"list ShopA", "deliveries list ShopA"} {
		code, out, stderr := d.run(list)
		if code != ExitDone || strings.Contains(out, "ShopA_1") || !strings.Contains(out, "ShopA_2") {
			t.Errorf("%s: exit %d, %s%s", list, code, out, stderr)
		}
	}
}
