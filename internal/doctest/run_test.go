package doctest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The promise of the README: from a fresh clone to a verified webhook.
const (
	maxCommands = 5
	maxDuration = 5 * time.Minute
)

const quickstartHeading = "From a clone to a verified webhook"

// TestQuickstart runs the commands of the README, and then those of docs/getting-started.md's local part, as they are printed, by
// bash, in a copy of the tree.
func TestQuickstart(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a whole gateway from a clone")
	}
	requireTool(t, "bash", "make", "node", "npm", "curl")
	blocks := sectionBlocks(findPage(t, "README.md"), quickstartHeading)
	if len(blocks) != 2 || strings.TrimSpace(blocks[0].text) != "make run" {
		t.Fatalf("%d blocks; the first is to be make run, the second what follows in another terminal", len(blocks))
	}
	if n := len(countedCommands(blocks[1].text)) + 1; n > maxCommands {
		t.Errorf("%d commands, more than %d", n, maxCommands)
	}
	folder, port := copyCheckout(t), freePorts(t)
	started := time.Now()
	terminal := startRun(t, folder, blocks[0].text, port)
	output := runBash(t, folder, blocks[1].text)
	elapsed := time.Since(started)
	for _, want := range []string{`"status":"successful"`, `"state":"cart-7"`, ": verified\n", "with another amount: refused"} {
		if !strings.Contains(output, want) {
			t.Errorf("the commands do not show %q:\n%s", want, output)
		}
	}
	if elapsed > maxDuration {
		t.Errorf("%s, more than %s", elapsed, maxDuration)
	}
	t.Logf("from a clone to a verified webhook in %s", elapsed.Round(time.Second))
	t.Run("the rest of the README", func(t *testing.T) { runFirstCharge(t, folder) })
	t.Run("docs/getting-started.md", func(t *testing.T) { runMarkedBlocks(t, "docs/getting-started.md", folder) })
	t.Run("docs/merchants.md", func(t *testing.T) { runMarkedBlocks(t, "docs/merchants.md", folder) })
	select {
	case <-terminal:
		t.Error("the run ended by itself")
	default:
	}
}

// runFirstCharge runs the charge's command twice: the second time is a retry.
func runFirstCharge(t *testing.T, folder string) {
	const mark = "@@ the end of block @@"
	blocks := sectionBlocks(findPage(t, "README.md"), "The first charge")
	if len(blocks) != 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	end := "echo '" + mark + "'\n"
	displayed := strings.Split(runBash(t, folder, blocks[0].text+blocks[1].text+end+blocks[1].text+end+blocks[2].text), mark)
	if !strings.HasPrefix(displayed[0], "HTTP/1.1 201") || strings.Contains(displayed[0], "Idempotent-Replayed") || !strings.Contains(displayed[1], "Idempotent-Replayed: true") {
		t.Errorf("the charge:\n%s\nagain:\n%s", displayed[0], displayed[1])
	}
	if strings.Count(displayed[2], `"kind":"charge"`) != 1 {
		t.Errorf("effects %s", displayed[2])
	}
}

// runMarkedBlocks runs the blocks of a page that a comment above them marks, one after another in one shell, and asks for what the
// comment says that they show.
func runMarkedBlocks(t *testing.T, name, folder string) {
	const mark = "@@ the end of block @@"
	var blocks []block
	var script strings.Builder
	for _, b := range findPage(t, name).blocks {
		if b.language == "sh" && strings.HasPrefix(b.comment, "run") {
			blocks = append(blocks, b)
			fmt.Fprintf(&script, "%s\necho '%s'\n", b.text, mark)
		}
	}
	if len(blocks) < 5 {
		t.Fatalf("%d blocks are to be run", len(blocks))
	}
	outputs := strings.Split(runBash(t, folder, script.String()), mark)
	for i, b := range blocks {
		if _, want, wants := strings.Cut(b.comment, "shows: "); wants && !strings.Contains(outputs[i], want) {
			t.Errorf("%s:%d does not show %q:\n%s", name, b.line, want, outputs[i])
		}
	}
}

// sectionBlocks are the shell's blocks of a section.
func sectionBlocks(p page, title string) []block {
	var found []block
	for _, b := range p.blocks {
		if b.section == title && b.language == "sh" {
			found = append(found, b)
		}
	}
	return found
}

// countedCommands counts as a person does who pastes them: a command ends with a line that is no continuation and leaves no
// quote open.
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

// startRun starts the foreground command and returns when run.json is there. The run ends with the test.
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
		_ = run.Wait() // how it ended shows in its output
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
			t.Fatalf("the run ended at its start:\n%s", output.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("the run does not start")
		}
	}
}

// runBash runs a text as a terminal would, and gives its standard output. The run has other ports than make run has by itself, so
// that a command which takes them for granted fails.
func runBash(t *testing.T, folder, text string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", text)
	command.Dir, command.Env = folder, environment()
	var notes bytes.Buffer
	command.Stderr = &notes
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v:\n%s\n%s%s", err, text, output, notes.String())
	}
	return string(output)
}

// environment is this process's without what would change a run.
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

// freePorts finds the first of three ports in a row that nobody uses.
func freePorts(t *testing.T) int {
	t.Helper()
	for port := 20000 + os.Getpid()%20000; port < 60000; port += 3 {
		free := true
		for i := range 3 {
			listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port+i)))
			if err != nil {
				free = false
				break
			}
			_ = listener.Close()
		}
		if free {
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}
