package doctest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/control"
)

// command is one command line of a page, in a block or in inline code.
type command struct {
	page    string
	line    int
	words   []string
	mention bool // in running text: what it needs besides may be left out
}

// commands are all command lines of a page that begin with make, go or gatewayctl, with what may stand before them in a line.
func commands(p page) []command {
	var found []command
	add := func(line int, text string, mention bool) {
		for _, words := range split(text) {
			for len(words) > 0 && (assignment.MatchString(words[0]) || words[0] == "exec" || words[0] == "sudo" || words[0] == "$") {
				words = words[1:]
			}
			if len(words) > 0 {
				found = append(found, command{p.name, line, words, mention})
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
		if tool.MatchString(c.text) {
			add(c.line, c.text, false)
		}
	}
	for _, c := range p.codes {
		if tool.MatchString(c.text) {
			add(c.line, c.text, true)
		}
	}
	return found
}

var (
	assignment = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*=`)
	tool       = regexp.MustCompile(`^(make|gatewayctl|go (run|test|build|vet|tool)) `)
	target     = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
)

// split makes the words of a line's commands as a shell does, without expansions: ";", "|" and "&" end a command, a comment
// ends them all, and redirections are left out with what follows them.
func split(line string) [][]string {
	var found [][]string
	var words []string
	var word strings.Builder
	inside, quote, skip := false, rune(0), false
	endWord := func() {
		if inside && !skip {
			words = append(words, word.String())
		}
		if inside {
			skip = false
		}
		word.Reset()
		inside = false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			found = append(found, words)
		}
		words, skip = nil, false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
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
			word.WriteRune(r)
			inside = true
		}
	}
	endCommand()
	return found
}

// TestCommands asks of every command line that what it starts is there.
func TestCommands(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(top, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, match := range target.FindAllStringSubmatch(string(makefile), -1) {
		targets[match[1]] = true
	}
	checked := 0
	for _, p := range all(t) {
		for _, c := range commands(p) {
			why, known := "", true
			switch c.words[0] {
			case "make":
				why = staleMake(c.words[1:], targets)
			case "go":
				why = staleGo(t, c.words[1:], c.mention)
			case "gatewayctl":
				why = staleControl(c.words[1:], c.mention)
			default:
				known = false
			}
			if known {
				checked++
			}
			if why != "" {
				t.Errorf("%s:%d: %s: %s", c.page, c.line, strings.Join(c.words, " "), why)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d commands were found: the pages are not read as they are written", checked)
	}
}

// staleMake finds words that are neither a target nor NAME=VALUE.
func staleMake(words []string, targets map[string]bool) string {
	for _, word := range words {
		if !strings.Contains(word, "=") && !strings.HasPrefix(word, "-") && !targets[word] {
			return "the Makefile has no target " + word
		}
	}
	return ""
}

// staleGo finds packages that are not there. What follows gatewayctl's package is a command line of its own.
func staleGo(t *testing.T, words []string, mention bool) string {
	t.Helper()
	for i, word := range words {
		if !strings.HasPrefix(word, "./") || strings.ContainsAny(word, "$<*") {
			continue
		}
		if !exists(strings.TrimSuffix(strings.TrimSuffix(word, "..."), "/")) {
			return "there is no " + word
		}
		if word == "./cmd/gatewayctl" && words[0] == "run" {
			return staleControl(words[i+1:], mention)
		}
	}
	return ""
}

// errNoDeployment is where a command line that is right ends here.
var errNoDeployment = errors.New("no deployment")

// incomplete are the tool's words for a command line that lacks something.
var incomplete = []string{"missing flags", `expected "<`, "expected one of", "needs at least"}

// staleControl gives a command line to the tool itself, without a deployment: only what is wrong with the line fails. A
// mention may name a command alone, or a group of commands.
func staleControl(words []string, mention bool) string {
	if slices.Contains(words, "...") || len(words) == 0 {
		return "" // the page leaves the rest open
	}
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "--local" }) // there is no local run here
	var notes bytes.Buffer
	exit := control.Run(context.Background(), words, control.System{
		In:  strings.NewReader(`{"sandbox":{"current":"a1","accounts":{"a1":{"base_url":"https://operator.example","access_token":"t"}}}}`),
		Out: io.Discard, Notes: &notes, Variable: place, Who: "a reader", Now: time.Now, Rand: zeros{},
		Connect: func(control.System, control.Places) (*control.Stores, error) { return nil, errNoDeployment },
	})
	lacks := slices.ContainsFunc(incomplete, func(text string) bool { return strings.Contains(notes.String(), text) })
	if strings.Contains(notes.String(), "no such file") {
		return "" // the reader's own file
	}
	if exit != control.ExitUsage || mention && lacks && !strings.Contains(notes.String(), "unexpected") {
		return ""
	}
	return strings.TrimSpace(notes.String())
}

// place is the environment of a shell that knows the deployment's tables and secrets.
func place(variable string) string {
	if strings.HasSuffix(variable, "_TABLE") || strings.HasSuffix(variable, "_SECRET") {
		return "a-name"
	}
	if strings.HasSuffix(variable, "_URL") {
		return "http://127.0.0.1:1"
	}
	return ""
}

// zeros is randomness for commands that end before it matters.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestStaleControl(t *testing.T) {
	cases := map[string]bool{
		"merchant list": true, "merchant show Shop": true, "merchant add Shop --country CI --operator orange": true, "operator set -": true,
		"merchants list": false, "merchant paint Shop": false, "merchant show": false, "merchant list --paint": false, "keys list paint": false,
		"merchant add Shop --country CI --operator nobody": false, "merchant": false, "operator set credentials.json": true,
	}
	for line, want := range cases {
		if why := staleControl(split(line)[0], false); (why == "") != want {
			t.Errorf("%s: %q", line, why)
		}
	}
	for line, want := range map[string]bool{"merchant": true, "merchant show": true, "endpoint enable": true, "merchant paint": false, "paint": false} {
		if why := staleControl(split(line)[0], true); (why == "") != want {
			t.Errorf("mention of %s: %q", line, why)
		}
	}
}

func TestSplit(t *testing.T) {
	var got []string
	for _, words := range split(`A=1 b 'c d; |' "e f"g --h=i '' <in > out j&& k|l  # not; this`) {
		got = append(got, strings.Join(words, "+"))
	}
	if want := "A=1+b+c d; |+e fg+--h=i++j,k,l"; strings.Join(got, ",") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// need finds a program that a test cannot do without. In CI its lack is a failure, elsewhere the test is passed over.
func need(t *testing.T, programs ...string) {
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
