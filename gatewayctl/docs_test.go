package gatewayctl

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestEveryCommandHasAnExample compares the tool's page with the tool: each command has an example, and each exit code
// a row.
func TestEveryCommandHasAnExample(t *testing.T) {
	page := readFile(t, "../docs/gatewayctl.md")
	tool, err := NewTool()
	if err != nil {
		t.Fatal(err)
	}
	leaves := 0
	for _, command := range tool.parser.Model.Leaves(true) {
		leaves++
		line := "    gatewayctl " + commandName(command)
		if !strings.Contains(page, line+" ") && !strings.Contains(page, line+"\n") {
			t.Errorf("the page has no example of %s", commandName(command))
		}
	}
	if leaves < 40 {
		t.Errorf("only %d commands were found", leaves)
	}
	for _, code := range []int{ExitDone, ExitFailed, ExitUsage} {
		if !strings.Contains(page, fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("the page does not explain the exit code %d", code)
		}
	}
}

// TestPrintedExports runs each export that the runbooks print, and compares the columns of its output with those that
// the pages name.
func TestPrintedExports(t *testing.T) {
	runbooks, page := readFile(t, "../docs/operations.md"), readFile(t, "../docs/gatewayctl.md")
	named := regexp.MustCompile("`([a-z_]+)`")
	_, columns, _ := strings.Cut(page, "\n| Columns | Meaning |\n|---|---|\n")
	columns, _, _ = strings.Cut(columns, "\n\n")
	var documented []string
	for row := range strings.Lines(columns) {
		for _, name := range named.FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			documented = append(documented, name[1])
		}
	}
	checkEqual(t, "the columns in docs/gatewayctl.md", documented, csvColumns)
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
		d, shop := newShopTool(t)
		d.addDeliveredPayment(shop, 1, d.now)
		command, file, isRedirected := strings.Cut(line[1], " > ")
		code, text, stderr := d.run(command)
		if _, output, found := strings.Cut(command, "--output "); found && !isRedirected {
			file, _, _ = strings.Cut(output, " ")
			text = readFile(t, file)
		}
		heading, _, _ := strings.Cut(text, "\n")
		if code != ExitDone || heading != strings.Join(documented, ",") {
			t.Errorf("%s: exit %d, %s; the columns of %s are %q", line[1], code, stderr, file, heading)
		}
	}
}

// commandName is a command as it is typed, without its arguments.
func commandName(command *kong.Node) string {
	if command.Parent == nil {
		return ""
	}
	return strings.TrimSpace(commandName(command.Parent) + " " + command.Name)
}
