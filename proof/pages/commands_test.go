package pages

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/deployment"
)

// command is one command line of a page, in a block or in inline code.
type command struct {
	page      string
	line      int
	arguments []string
	inText    bool // in running text, where required arguments may be missing
}

// commands returns all command lines of a page without leading assignments, sudo, exec and prompts.
func commands(p page) []command {
	var found []command
	add := func(line int, text string, mention bool) {
		for _, arguments := range splitCommands(text) {
			for len(arguments) > 0 && (assignmentPattern.MatchString(arguments[0]) || arguments[0] == "exec" ||
				arguments[0] == "sudo" || arguments[0] == "$") {
				arguments = arguments[1:]
			}
			if len(arguments) > 0 {
				found = append(found, command{p.name, line, arguments, mention})
			}
		}
	}
	for _, b := range p.blocks {
		if b.language != "sh" && b.language != "console" {
			continue
		}
		line, text := b.line, ""
		for part := range strings.Lines(b.text) {
			part = strings.TrimRight(part, "\n")
			text += strings.TrimSuffix(part, `\`)
			if !strings.HasSuffix(part, `\`) {
				add(line, text, false)
				text = ""
			}
			line++
		}
	}
	for _, c := range p.indented {
		if toolPattern.MatchString(c.text) {
			add(c.line, c.text, false)
		}
	}
	for _, c := range p.codes {
		if toolPattern.MatchString(c.text) {
			add(c.line, c.text, true)
		}
	}
	return found
}

var (
	assignmentPattern = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*=`)
	toolPattern       = regexp.MustCompile(`^(make|gatewayctl|go (run|test|build|vet|tool)) `)
	makeTargetPattern = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
)

// splitCommands splits a line into commands and words as a shell does, without expansions. ";", "|" and "&" end a
// command, and a comment ends the line. Redirections are dropped.
func splitCommands(line string) [][]string {
	var found [][]string
	var arguments []string
	var argument strings.Builder
	inside, quote, skip := false, rune(0), false
	endWord := func() {
		if inside && !skip {
			arguments = append(arguments, argument.String())
		}
		skip = skip && !inside
		argument.Reset()
		inside = false
	}
	endCommand := func() {
		endWord()
		if len(arguments) > 0 {
			found = append(found, arguments)
		}
		arguments, skip = nil, false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			argument.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inside = r, true
		case r == ' ' || r == '\t':
			endWord()
		case r == ';' || r == '|' || r == '&':
			endCommand()
		case r == '#' && !inside:
			endCommand()
			return found
		case r == '<' || r == '>':
			endWord()
			skip = true
		default:
			argument.WriteRune(r)
			inside = true
		}
	}
	endCommand()
	return found
}

// TestCommands checks that the target, package or gatewayctl command of every command line exists.
func TestCommands(t *testing.T) {
	makefile := readFile(t, "Makefile")
	targets := map[string]bool{}
	for _, match := range makeTargetPattern.FindAllStringSubmatch(makefile, -1) {
		targets[match[1]] = true
	}
	checked := 0
	for _, p := range allPages(t) {
		for _, c := range commands(p) {
			reason, known := "", true
			switch c.arguments[0] {
			case "make":
				reason = invalidMakeCommand(c.arguments[1:], targets)
			case "go":
				reason = invalidGoCommand(t, c.arguments[1:], c.inText)
			case "gatewayctl":
				reason = invalidControlCommand(c.arguments[1:], c.inText)
			default:
				known = false
			}
			if known {
				checked++
			}
			if reason != "" {
				t.Errorf("%s:%d: %s: %s", c.page, c.line, strings.Join(c.arguments, " "), reason)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d commands were found: the test does not parse the pages correctly", checked)
	}
}

// invalidMakeCommand reports an argument that is neither a target nor NAME=VALUE, "" for none.
func invalidMakeCommand(arguments []string, targets map[string]bool) string {
	for _, argument := range arguments {
		if !strings.Contains(argument, "=") && !strings.HasPrefix(argument, "-") && !targets[argument] {
			return "the Makefile has no target " + argument
		}
	}
	return ""
}

// invalidGoCommand reports a missing package, "" for none. The arguments of gatewayctl's package are a command line of
// gatewayctl.
func invalidGoCommand(t *testing.T, arguments []string, mention bool) string {
	t.Helper()
	for i, argument := range arguments {
		if !strings.HasPrefix(argument, "./") || strings.ContainsAny(argument, "$<*") {
			continue
		}
		if !fileExists(strings.TrimSuffix(strings.TrimSuffix(argument, "..."), "/")) {
			return "the tree has no " + argument
		}
		if argument == "./cmd/gatewayctl" && arguments[0] == "run" {
			return invalidControlCommand(arguments[i+1:], mention)
		}
	}
	return ""
}

// errNoDeployment ends a valid command line.
var errNoDeployment = errors.New("no deployment")

// incompleteCommand has gatewayctl's messages for a command line with missing arguments.
var incompleteCommand = []string{"missing flags", `expected "<`, "expected one of", "needs at least"}

// invalidControlCommand parses a command line with gatewayctl itself, without a deployment, and reports its error, ""
// for none. With mention, required arguments may be missing.
func invalidControlCommand(arguments []string, mention bool) string {
	if slices.Contains(arguments, "...") || len(arguments) == 0 {
		return "" // the page shows only a part of the command
	}
	// the test has no local run
	arguments = slices.DeleteFunc(slices.Clone(arguments), func(argument string) bool { return argument == "--local" })
	var stderr bytes.Buffer
	exit := gatewayctl.Run(context.Background(), arguments, deployment.System{
		Stdin: strings.NewReader(`{"sandbox":{"current":"a1","accounts":{"a1":{` +
			`"base_url":"https://operator.example","access_token":"t"}}}}`),
		Stdout: io.Discard, Stderr: &stderr, Getenv: placeholderDeployment, User: "a reader", Now: time.Now,
		Rand: zeros{},
		Connect: func(deployment.System, deployment.Names) (*deployment.Stores, error) {
			return nil, errNoDeployment
		},
		ReadStack: func(context.Context, string) (*deployment.Stack, error) { return &deployment.Stack{}, nil },
	})
	isIncomplete := slices.ContainsFunc(incompleteCommand,
		func(text string) bool { return strings.Contains(stderr.String(), text) })
	if strings.Contains(stderr.String(), "no such file") {
		return "" // the reader's own file
	}
	if exit != gatewayctl.ExitUsage || mention && isIncomplete && !strings.Contains(stderr.String(), "unexpected") {
		return ""
	}
	return strings.TrimSpace(stderr.String())
}

// placeholderDeployment returns the variables of a shell that is configured for a deployment.
func placeholderDeployment(variable string) string {
	if strings.HasSuffix(variable, "_TABLE") || strings.HasSuffix(variable, "_SECRET") {
		return "a-name"
	}
	if strings.HasSuffix(variable, "_URL") {
		return "http://127.0.0.1:1"
	}
	return ""
}

// zeros is a random source for commands that end before they use it.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestInvalidControlCommand checks which command lines are invalid.
func TestInvalidControlCommand(t *testing.T) {
	cases := map[string]bool{
		"merchant list": true, "merchant show Shop": true, "merchant add Shop --country CI --operator orange": true,
		"operator set -": true,
		"merchants list": false, "merchant paint Shop": false, "merchant show": false, "merchant list --paint": false,
		"keys list paint": false,
		"merchant add Shop --country CI --operator unknown": false, "merchant": false,
		"operator set credentials.json": true,
	}
	for line, want := range cases {
		if reason := invalidControlCommand(splitCommands(line)[0], false); (reason == "") != want {
			t.Errorf("%s: error %q, want valid: %v", line, reason, want)
		}
	}
	for line, want := range map[string]bool{"merchant": true, "merchant show": true, "endpoint enable": true,
		"merchant paint": false, "paint": false} {
		if reason := invalidControlCommand(splitCommands(line)[0], true); (reason == "") != want {
			t.Errorf("mention of %s: error %q, want valid: %v", line, reason, want)
		}
	}
}

// TestSplitCommands checks the words of a line with quotes, redirections and a comment.
func TestSplitCommands(t *testing.T) {
	var got []string
	for _, arguments := range splitCommands(`A=1 b 'c d; |' "e f"g --h=i '' <in > out j&& k|l  # not; this`) {
		got = append(got, strings.Join(arguments, "+"))
	}
	if want := "A=1+b+c d; |+e fg+--h=i++j,k,l"; strings.Join(got, ",") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// requireTool requires programs on the PATH. Without them the test fails in CI and is skipped elsewhere.
func requireTool(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not on the PATH", name)
		}
		t.Skipf("%s is not on the PATH", name)
	}
}
