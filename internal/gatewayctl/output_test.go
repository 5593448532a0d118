package gatewayctl

import (
	"encoding/json"
	"strings"
	"testing"
)

// With --json the standard output has one JSON document, whatever comes of a command.
func TestErrorsAreJSONToo(t *testing.T) {
	d := newTestTool(t)
	d.onboardShop()
	for _, c := range []struct {
		line  string
		usage bool
		says  string
	}{
		{"merchant show Nobody", false, `there is no merchant "Nobody"`},
		{"merchant paint", true, "paint"},
		{"merchant show ShopA --paint", true, "paint"},
		{"merchant suspend ShopA --yes", true, "--reason"},
		{"list ShopA --day soon", true, "soon"},
		{"merchant list --local", true, "no local run"},
		{"export ShopA --from 2026-03-01 --to 2026-03-01 --cursor x", true, "cursor"},
	} {
		code, out, notes := d.run("--json " + c.line)
		var lookupResult map[string]any
		if err := json.Unmarshal([]byte(out), &lookupResult); err != nil {
			t.Errorf("%s: %v in %q", c.line, err, out)
			continue
		}
		text, _ := lookupResult["error"].(string)
		if len(lookupResult) != 2 || lookupResult["usage"] != c.usage || !strings.Contains(text, c.says) || strings.HasPrefix(text, "usage") {
			t.Errorf("%s: %v", c.line, lookupResult)
		}
		if (code == ExitUsage) != c.usage || !strings.Contains(notes, c.says) {
			t.Errorf("%s: exit %d, %s", c.line, code, notes)
		}
		if _, out, _ := d.run(c.line); out != "" {
			t.Errorf("%s, without --json: %q", c.line, out)
		}
	}
}

// What a command answered before it failed is the document.
func TestPartialOutputIsNotFollowedByErrorJSON(t *testing.T) {
	d := newTestTool(t)
	d.onboardShop()
	d.useSandboxOperator()
	code, out, notes := d.run("operator check --timeout 1s --json")
	var results []accountCheck
	if err := json.Unmarshal([]byte(out), &results); err != nil || code != ExitFailed || len(results) != 1 || !strings.Contains(notes, errAccountCheck.Error()) {
		t.Errorf("exit %d, %v in %q, %s", code, err, out, notes)
	}
}
