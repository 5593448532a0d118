package gatewayctl

import (
	"encoding/json"
	"strings"
	"testing"
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
		!strings.Contains(stderr, errAccountCheck.Error()) {
		t.Errorf("exit %d, %v in %q, %s", code, err, out, stderr)
	}
}
