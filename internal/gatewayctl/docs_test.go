package gatewayctl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestEveryCommandHasAnExample compares the tool's page with the tool: each command has an example, and each exit code
// a row.
func TestEveryCommandHasAnExample(t *testing.T) {
	page := readFile(t, "../../docs/gatewayctl.md")
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

// commandName is a command as it is typed, without its arguments.
func commandName(command *kong.Node) string {
	if command.Parent == nil {
		return ""
	}
	return strings.TrimSpace(commandName(command.Parent) + " " + command.Name)
}
