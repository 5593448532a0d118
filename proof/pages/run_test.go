package pages

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The limits of the README's quickstart: from a fresh clone to a verified webhook.
const (
	maxCommands = 5
	maxDuration = 5 * time.Minute
)

const quickstartHeading = "From a clone to a verified webhook"

// TestQuickstart runs the commands of the README and of docs/getting-started.md's local part in a copy of the tree.
func TestQuickstart(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a whole gateway from a clone")
	}
	requireTool(t, "bash", "make", "node", "npm", "curl")
	blocks := sectionBlocks(findPage(t, "README.md"), quickstartHeading)
	if len(blocks) != 4 || strings.TrimSpace(blocks[0].text) != "make run" {
		t.Fatalf("%d blocks, want four: make run, the variables, a charge, a payment with its webhook", len(blocks))
	}
	var commands strings.Builder // for the second terminal
	for _, b := range blocks[1:] {
		commands.WriteString(b.text)
	}
	if n := len(countedCommands(commands.String())) + 1; n > maxCommands {
		t.Errorf("%d commands, want at most %d", n, maxCommands)
	}
	folder, port := copyCheckout(t), freePorts(t, 3, 20000, 60000)
	started := time.Now()
	terminal := startRun(t, folder, blocks[0].text, port)
	output := runBash(t, folder, commands.String())
	elapsed := time.Since(started)
	for _, want := range []string{"HTTP/1.1 201", `"status":"successful"`, `"state":"cart-7"`, ": verified\n",
		"with another amount: refused"} {
		if !strings.Contains(output, want) {
			t.Errorf("the commands do not show %q:\n%s", want, output)
		}
	}
	if elapsed > maxDuration {
		t.Errorf("the quickstart took %s, want at most %s", elapsed, maxDuration)
	}
	t.Logf("from a clone to a verified webhook in %s", elapsed.Round(time.Second))
	t.Run("the rest of the README", func(t *testing.T) { runFailure(t, folder) })
	t.Run("docs/getting-started.md", func(t *testing.T) { runMarkedBlocks(t, "docs/getting-started.md", folder) })
	t.Run("docs/merchants.md", func(t *testing.T) { runMarkedBlocks(t, "docs/merchants.md", folder) })
	t.Run("docs/walkthroughs.md", func(t *testing.T) {
		page := findPage(t, "docs/walkthroughs.md")
		runBlocks(t, page, page.blocks, folder, "exec 2>&1\n")
	})
	t.Run("docs/operations.md", func(t *testing.T) { walkRunbooks(t, folder) })
	select {
	case <-terminal:
		t.Error("the run ended by itself")
	default:
	}
}

// runFailure follows the README's section on a failure: the first charge is sent again with another alias. Its response
// is lost, a retry gets the operator's, and another one the stored one. There is one effect.
func runFailure(t *testing.T, folder string) {
	const mark = "@@ the end of block @@"
	quickstart := sectionBlocks(findPage(t, "README.md"), quickstartHeading)
	blocks := sectionBlocks(findPage(t, "README.md"), "Try a failure")
	if len(blocks) != 2 {
		t.Fatalf("the failure has %d blocks, want 2", len(blocks))
	}
	end := "echo '" + mark + "'\n"
	charge := quickstart[2].text + end
	displayed := strings.Split(runBash(t, folder,
		quickstart[1].text+blocks[0].text+charge+charge+charge+blocks[1].text), mark)
	for i, want := range []string{"HTTP/1.1 504", "HTTP/1.1 201", "HTTP/1.1 201"} {
		isStored := strings.Contains(displayed[i], "Idempotent-Replayed: true")
		if !strings.HasPrefix(strings.TrimSpace(displayed[i]), want) || isStored != (i == 2) {
			t.Errorf("the charge number %d:\n%s\nwant %s", i+1, displayed[i], want)
		}
	}
	if strings.Count(displayed[3], `"kind":"charge"`) != 1 {
		t.Errorf("effects %s, want one charge", displayed[3])
	}
}

// runMark matches the comment of a block that runs.
var runMark = regexp.MustCompile(`^run(?: exits (\d+))?( until it)?(?: shows: (.*))?$`)

// runMarkedBlocks runs the marked blocks of a page in one shell.
func runMarkedBlocks(t *testing.T, name, folder string) {
	t.Helper()
	page := findPage(t, name)
	if blocks := markedBlocks(page.blocks); len(blocks) < 5 {
		t.Fatalf("%s has %d blocks with a run comment, want at least 5", name, len(blocks))
	}
	runBlocks(t, page, page.blocks, folder, "")
}

// markedBlocks returns the blocks that have a run comment.
func markedBlocks(all []block) (marked []block) {
	for _, b := range all {
		if b.language == "sh" && runMark.MatchString(b.comment) {
			marked = append(marked, b)
		}
	}
	return marked
}

// runBlocks runs a text and then the marked blocks in one shell, and checks the output that the comments promise.
func runBlocks(t *testing.T, p page, all []block, folder, before string) {
	t.Helper()
	const mark = "@@ the end of block @@"
	blocks := markedBlocks(all)
	var script strings.Builder
	script.WriteString(before)
	for _, b := range blocks {
		fmt.Fprintf(&script, "%s\necho '%s'\n", markedScript(b), mark)
	}
	outputs := strings.Split(runBash(t, folder, script.String()), mark)
	for i, b := range blocks {
		if want := runMark.FindStringSubmatch(b.comment)[3]; !strings.Contains(outputs[i], want) {
			t.Errorf("%s:%d does not show %q:\n%s", p.name, b.line, want, outputs[i])
		}
	}
}

// markedScript returns the text of a block with what its comment requires: an exit code, or to repeat it, as a person
// would, until it shows a text.
func markedScript(b block) string {
	mark := runMark.FindStringSubmatch(b.comment)
	switch {
	case mark[1] != "":
		return fmt.Sprintf("code=0\n{\n%s} || code=$?\ntest $code = %s", b.text, mark[1])
	case mark[2] != "":
		return fmt.Sprintf("for n in {1..100}; do\nseen=$(\n%s)\n[[ $seen != *%q* ]] || break\nsleep 0.3\ndone\n"+
			"printf '%%s\\n' \"$seen\"", b.text, mark[3])
	}
	return b.text
}

// sectionBlocks returns the shell blocks of a section.
func sectionBlocks(p page, title string) []block {
	var found []block
	for _, b := range p.blocks {
		if b.section == title && b.language == "sh" {
			found = append(found, b)
		}
	}
	return found
}

// countedCommands splits a text into the commands that a person pastes. A command ends at the end of a line, unless the
// line ends with \ or | or has an open quote.
func countedCommands(text string) []string {
	var found []string
	var open string
	for line := range strings.Lines(text) {
		open += line
		ended := strings.TrimRight(line, " \n")
		if strings.TrimSpace(open) == "" || strings.HasPrefix(open, "#") {
			open = ""
			continue
		}
		if !strings.HasSuffix(ended, `\`) && !strings.HasSuffix(ended, "|") && strings.Count(open, "'")%2 == 0 {
			found = append(found, strings.TrimSpace(open))
			open = ""
		}
	}
	return found
}

// startRun starts the foreground command and waits for run.json. The run ends with the test.
func startRun(t *testing.T, folder, text string, port int) <-chan struct{} {
	t.Helper()
	run := exec.Command("bash", "-euc", text)
	run.Dir = folder
	run.Env = append(environment(), "PORT="+strconv.Itoa(port))
	var output bytes.Buffer
	run.Stdout, run.Stderr = &output, &output
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = run.Wait() // the output shows how it ended
		close(ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-run.Process.Pid, syscall.SIGINT) // the group of this test's own run, as Ctrl-C does
		<-ended
	})
	for deadline := time.Now().Add(maxDuration); ; time.Sleep(100 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(folder, ".local", "run.json")); err == nil {
			return ended
		}
		select {
		case <-ended:
			t.Fatalf("the run ended before it was ready:\n%s", output.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("the run has not written run.json in time")
		}
	}
}

// runBash runs a text in bash and returns its standard output. The run does not use the default ports, so that a
// command that assumes them fails.
func runBash(t *testing.T, folder, text string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", text)
	command.Dir, command.Env = folder, environment()
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v:\n%s\n%s%s", err, text, output, stderr.String())
	}
	return string(output)
}

// environment returns the environment without the variables that change a run.
func environment() []string {
	var kept []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch name {
		case "PORT", "SPEED", "RESET", "LOCAL_DIR", "AWS_ENDPOINT_URL_DYNAMODB", "MAKELEVEL", "MAKEFLAGS":
		default:
			kept = append(kept, variable)
		}
	}
	return kept
}

// freePorts returns the first of count free ports in a row.
func freePorts(t *testing.T, count, from, to int) int {
	t.Helper()
	for port := from + os.Getpid()%((to-from)/2); port < to; port += count {
		free := 0
		for free < count && portFree(port+free) {
			free++
		}
		if free == count {
			return port
		}
	}
	t.Fatalf("this machine has no %d free ports in a row", count)
	return 0
}

// portFree reports whether nothing listens on a port.
func portFree(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	return err == nil && listener.Close() == nil
}
