package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mobilegateway/local"
)

// startTimeout is how long a run may take to respond, including its build.
const startTimeout = 2 * time.Minute

// makeProcess is a local run, started with make, and its output.
type makeProcess struct {
	*exec.Cmd
	dir    string
	exited chan struct{}

	mu     sync.Mutex
	output bytes.Buffer
}

// startMakeRun starts make run in its own process group, as a terminal does.
func startMakeRun(t *testing.T, dir string, environment ...string) *makeProcess {
	t.Helper()
	p := &makeProcess{dir: dir, exited: make(chan struct{})}
	p.Cmd = exec.CommandContext(context.Background(), "make", "run")
	p.Dir = ".."
	p.Env = append(cleanEnvironment(), "LOCAL_DIR="+dir)
	p.Env = append(p.Env, environment...)
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stdout, p.Stderr = write, write
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	go p.captureOutput(read)
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.exited
	})
	return p
}

// captureOutput stores the output until the process ends.
func (p *makeProcess) captureOutput(read *os.File) {
	lines := bufio.NewScanner(read)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.output.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
	}
	_ = p.Wait()
	close(p.exited)
}

// outputText returns the output so far.
func (p *makeProcess) outputText() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// signal sends a signal to the whole group, as Ctrl-C in a terminal does.
func (p *makeProcess) signal(s syscall.Signal) { _ = syscall.Kill(-p.Process.Pid, s) }

// waitReady waits for run.json and the banner, and reads run.json.
func (p *makeProcess) waitReady(t *testing.T) *target {
	t.Helper()
	path := filepath.Join(p.dir, "run.json")
	return eventually(t, startTimeout, func() (*target, error) {
		select {
		case <-p.exited:
			t.Fatalf("the run ended before it was ready:\n%s", p.outputText())
		default:
		}
		found, err := readTarget(path)
		if err == nil && !strings.Contains(p.outputText(), found.BaseURL+"\n") {
			err = errors.New("run.json exists without the banner: it may belong to a killed run")
		}
		return found, err
	})
}

// waitExit waits for the end of the run.
func (p *makeProcess) waitExit(t *testing.T, wait time.Duration) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(wait):
		t.Fatalf("the run has not ended after %s:\n%s", wait, p.outputText())
	}
}

// checkStartRefused checks that a run fails to start with one line that names the problem.
func checkStartRefused(t *testing.T, dir, expected string, environment ...string) {
	t.Helper()
	p := startMakeRun(t, dir, environment...)
	p.waitExit(t, startTimeout)
	printed := []string{}
	for line := range strings.Lines(p.outputText()) {
		if !strings.HasPrefix(line, "make: ") {
			printed = append(printed, line)
		}
	}
	if p.ProcessState.Success() || len(printed) != 1 || !strings.Contains(printed[0], expected) {
		t.Errorf("the run ended with %s and printed %q, want one line with %q", p.ProcessState, printed, expected)
	}
}

// waitGone waits until none of the processes exists.
func waitGone(t *testing.T, pids []int) {
	t.Helper()
	eventuallyNoError(t, 5*time.Second, func() error {
		for _, pid := range pids {
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("process %d exists", pid)
			}
		}
		return nil
	})
}

// processIDs returns all processes of a run.
func processIDs(p local.PIDs) []int {
	found := []int{p.Run}
	if p.DynamoDB != 0 {
		found = append(found, p.DynamoDB)
	}
	for _, function := range p.Functions {
		found = append(found, function...)
	}
	return found
}

// freePorts returns the first of three free ports in a row, which a run with PORT uses.
func freePorts(t *testing.T) string {
	t.Helper()
	for first := 21000 + os.Getpid()%10000; first < 65000; first += 3 {
		if portFree(first) && portFree(first+1) && portFree(first+2) {
			return strconv.Itoa(first)
		}
	}
	t.Fatal("there are no three free ports")
	return ""
}

func portFree(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// cleanEnvironment returns the environment without the variables of a make that started this test, which would change
// the make that the test starts.
func cleanEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "MAKE") })
}
