package gatewayctl

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"mobilegateway/gatewayctl/deployment"
)

// TestEveryCommandHasAnExample compares the tool's page with the tool: each command has an example, and each exit code
// a row.
func TestEveryCommandHasAnExample(t *testing.T) {
	text, err := os.ReadFile("../docs/gatewayctl.md")
	tool, toolErr := NewTool()
	if err := errors.Join(err, toolErr); err != nil {
		t.Fatal(err)
	}
	page := string(text)
	leaves := 0
	for _, command := range tool.parser.Model.Leaves(true) {
		leaves++
		example := regexp.MustCompile(`(?m)^ +gatewayctl (--stack \S+ )?` + commandName(command) + `( |$)`)
		if !example.MatchString(page) {
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

// A line that ends before its command gets all commands that can follow, by subject, and the one to begin with.
func TestMissingCommandListsAll(t *testing.T) {
	tool, err := NewTool()
	if err != nil {
		t.Fatal(err)
	}
	run := func(arguments ...string) (code int, stderr string) {
		var text strings.Builder
		code = tool.Run(t.Context(), arguments, deployment.System{
			Stdout: io.Discard, Stderr: &text, Getenv: func(string) string { return "" }, Now: time.Now,
			Connect: func(deployment.System, deployment.Names) (*deployment.Stores, error) {
				return nil, errors.New("there is no deployment")
			},
		})
		return code, text.String()
	}
	_, all := run("--json") // a line without arguments is not an error
	_, after, found := strings.Cut(all, "\nWhat waits for a person: begin with gatewayctl attention\n  attention ")
	if !found || !strings.Contains(after, "\n\nMerchants\n  merchant ") {
		t.Errorf("no subjects, or not what waits first: %s", all)
	}
	for _, command := range tool.parser.Model.Children {
		if strings.Count(all, "\n  "+command.Name+" ") != 1 {
			t.Errorf("%s is not listed once: %s", command.Name, all)
		}
		commands := command.Children
		for _, below := range commands {
			if code, stderr := run(command.Name); len(commands) > 1 && code == ExitUsage &&
				!strings.Contains(stderr, "\n  "+below.Name+" ") {
				t.Errorf("%s: %s is not listed: %s", command.Name, below.Name, stderr)
			}
			run(command.Name, below.Name, "--paint") // the next line gets all commands again
		}
	}
}
