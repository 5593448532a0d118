package pages

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// comparedBlock returns the text of a page between the marks of a block that a test compares.
func comparedBlock(t *testing.T, page, name string) string {
	t.Helper()
	_, text, found := strings.Cut(readFile(t, page), "<!-- compared: "+name+" -->\n")
	text, _, ends := strings.Cut(text, "<!-- end of "+name+" -->\n")
	if !found || !ends {
		t.Fatalf("%s has no block %q", page, name)
	}
	return text
}

// matches returns the first groups of a pattern in some texts, each once, sorted.
func matches(pattern string, texts ...string) []string {
	found := map[string]bool{}
	for _, text := range texts {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			found[match[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// TestEngineersTables compares the rows of tables on the engineers' pages with the constants or the fields that they
// explain, in both directions.
func TestEngineersTables(t *testing.T) {
	const (
		reconciliationPage = "docs/reconciliation.md"
		mappingFile        = "gatewayctl/reconcile/statement/mapping.go"
		cell               = "`([a-z_-]+)`"
		firstCell          = "(?m)^\\| " + cell
	)
	for block, c := range map[string]struct {
		page, documented, declared string
		files                      []string
	}{
		"reasons of attempts": {
			operationsPage, firstCell, `(?m)^\tReason\w+ += "([a-z-]+)"`,
			[]string{"shared/webhook/reason.go", "shared/ledger/outbox.go"},
		},
		"outcomes of calls": {
			operationsPage, firstCell, `(?m)^\tCall\w+ += "([a-z-]+)"`, []string{"shared/ledger/call.go"},
		},
		"what waits": {
			operationsPage, firstCell, `(?m)^\twaits\w+ += "([a-z-]+)"`, []string{"gatewayctl/attention/attention.go"},
		},
		"letters of a report": {
			operationsPage, "`([a-z])`", `(?m)^\t\w+ .*= '([a-z])'`, []string{"shared/timeline/timeline.go"},
		},
		"classes": {
			reconciliationPage, "(?m)^\\| (?:`[a-z-]+`, )?" + cell, `(?m)^\t\w+ +Class = "([a-z-]+)"`,
			[]string{"gatewayctl/reconcile/result/row.go"},
		},
		"columns of a statement": {
			reconciliationPage, firstCell, `(?m)^\tColumn\w+ += "([a-z_]+)"`, []string{mappingFile},
		},
		"fields of a mapping": {
			reconciliationPage, firstCell, "(?m)^\t[A-Z].*`json:\"([a-z_]+),omitempty\"`", []string{mappingFile},
		},
	} {
		var sources []string
		for _, file := range c.files {
			text := readFile(t, file)
			if file == mappingFile {
				text, _, _ = strings.Cut(text, "// Types divide") // another type has fields of its own
			}
			sources = append(sources, text)
		}
		got, want := matches(c.documented, comparedBlock(t, c.page, block)), matches(c.declared, sources...)
		if len(want) < 4 || !slices.Equal(got, want) {
			t.Errorf("%s: the block %q has %q, the code %q", c.page, block, got, want)
		}
	}
}

// TestReasonsOfCalls checks that each reason beside an outcome of a call is one of the code. The test of callResult
// compares the other direction.
func TestReasonsOfCalls(t *testing.T) {
	var sources strings.Builder
	for _, file := range []string{"outcome.go", "reserve.go"} {
		sources.WriteString(readFile(t, "shared/operation/"+file))
	}
	sources.WriteString(readFile(t, "shared/ledger/call.go"))
	for _, row := range strings.Split(comparedBlock(t, operationsPage, "outcomes of calls"), "\n| `")[1:] {
		_, reasons, _ := strings.Cut(row, " | ")
		for _, reason := range matches("`([a-z-]+)`", reasons) {
			if !strings.Contains(sources.String(), `"`+reason+`"`) {
				t.Errorf("%s has the reason %s, which no call has", operationsPage, reason)
			}
		}
	}
}
