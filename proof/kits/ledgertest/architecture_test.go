package ledgertest_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/shared/ledger"
)

var update = flag.Bool("update", false, "write docs/architecture.md")

// TestArchitecturePage compares the picture and the table of docs/architecture.md with the rows of the ledger.
func TestArchitecturePage(t *testing.T) {
	const path = "../../../docs/architecture.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := replaceBetween(t, string(text), "state diagram", stateDiagram())
	page = replaceBetween(t, page, "writes", writesTable())
	switch {
	case page == string(text):
	case *update:
		if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("docs/architecture.md differs from shared/ledger/transition.go: " +
			"run go test ./proof/kits/ledgertest -run TestArchitecturePage -update")
	}
}

// replaceBetween replaces the text between the two markers of a name.
func replaceBetween(t *testing.T, page, name, text string) string {
	t.Helper()
	before, rest, begins := strings.Cut(page, "<!-- printed: "+name+" -->\n")
	_, after, ends := strings.Cut(rest, "<!-- end of "+name+" -->\n")
	if !begins || !ends {
		t.Fatalf("docs/architecture.md has no markers of the %s", name)
	}
	return before + "<!-- printed: " + name + " -->\n" + text + "<!-- end of " + name + " -->\n" + after
}

// writesTable has a row for each write.
func writesTable() string {
	text := "| Write | Caller | Only if | State and Status | Changes |\n|---|---|---|---|---|\n"
	for _, row := range ledger.Rows() {
		var moves []string
		for _, m := range row.Moves {
			moves = append(moves, words(m.From)+" → "+words(m.To))
		}
		changes := strings.Join(ledgertest.Words(row.Changes), ", ")
		if row.Changes == ledger.OtherItem-1 {
			changes = "all"
		}
		text += fmt.Sprintf("| %s | `%s` | %s | %s | %s |\n", row.Name,
			strings.Join(strings.Fields(row.Callers), "`, `"), row.Condition, strings.Join(moves, "; "),
			cmp.Or(changes, "nothing"))
	}
	return text
}

// words are the States of a set, and then its Statuses.
func words(set string) string {
	isStatus := func(word string) bool { return slices.Contains(ledgertest.Statuses(), word) }
	states := slices.DeleteFunc(strings.Fields(set), isStatus)
	statuses := slices.DeleteFunc(strings.Fields(set), func(word string) bool { return !isStatus(word) })
	dimensions := []string{strings.Join(states, "/"), strings.Join(statuses, "/")}
	return strings.Join(slices.DeleteFunc(dimensions, func(text string) bool { return text == "" }), ", ")
}

// stateDiagram draws the steps of the State, and those of the Status of a payment and of an SMS.
func stateDiagram() string {
	states, statuses := ledgertest.States(), ledgertest.Statuses()
	sms := slices.Index(statuses, string(ledger.MessageWaiting))
	return "```mermaid\nstateDiagram-v2\n  state \"Entry\" as E {\n" +
		"    state \"State of our call\" as S {\n" + steps(states, states) + "    }\n    --\n" +
		"    state \"Status of a payment\" as P {\n" + steps(statuses, statuses[1:sms]) + "    }\n    --\n" +
		"    state \"Status of an SMS\" as Q {\n" + steps(statuses, statuses[sms:]) + "    }\n  }\n```\n"
}

// steps draws the changes of a dimension to some of its words, with the writes that make each.
func steps(dimension, targets []string) (text string) {
	for _, from := range dimension {
		for _, to := range targets {
			var writes []string
			for _, row := range ledger.Rows() {
				leads := func(m ledger.Move) bool { return ledgertest.Leads(m, dimension, from, to) }
				if from != to && slices.ContainsFunc(row.Moves, leads) {
					writes = append(writes, row.Name)
				}
			}
			if len(writes) > 0 {
				source := map[bool]string{true: "[*]", false: from}[from == dimension[0]]
				text += fmt.Sprintf("      %s --> %s : %s\n", source, to, strings.Join(writes, ", "))
			}
		}
	}
	return text
}
