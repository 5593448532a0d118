package check

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// invariantRow is a row of the table in docs/reliability.md: the number and the sentences of an invariant.
var invariantRow = regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \| [^|]*\|$`)

// TestSentences compares the sentences that violations quote with the table of docs/reliability.md.
func TestSentences(t *testing.T) {
	all := []invariant{
		oneEffect, finalOutcomes, sameResponse, statusOrder, confidentiality, exactAmounts, finalOrListed, keptReports,
		isolated, alarmsEnd, tableOfWrites, trueReasons, nothingAfterReturn, operatorsLimits, oneBody,
		circuitsHelp, booksAgree, ownResends,
	}
	page, err := os.ReadFile("../../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## The invariants")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := invariantRow.FindAllStringSubmatch(table, -1)
	if len(rows) != len(all) {
		t.Fatalf("docs/reliability.md has %d invariants, want %d", len(rows), len(all))
	}
	for place, row := range rows {
		if want := invariant(row[1] + ": " + row[2]); all[place] != want {
			t.Errorf("a violation quotes\n%s\nand docs/reliability.md has\n%s", all[place], want)
		}
	}
}
