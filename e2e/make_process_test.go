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
)

// startTimeout is how long a run that was built before may take to answer, and one that must build first.
const startTimeout = 2 * time.Minute

// makeProcess is the local run as a person starts it, with what it printed.
type makeProcess struct {
	*exec.Cmd
	dir    string
	exited chan struct{}

	mu     sync.Mutex
	output bytes.Buffer
}

// newRunDir is a run's folder. The functions' programs are those that the other runs of the checkout share.
func newRunDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "local")
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(root, ".local", "bin")
	for _, folder := range []string{dir, shared} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(shared, filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// startMakeRun types make run, in a process group of its own as a terminal does.
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

// captureOutput keeps what is printed, and notes the end.
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

// outputText is all that came so far.
func (p *makeProcess) outputText() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// signal sends a signal to the whole group, as a terminal's Ctrl-C does.
func (p *makeProcess) signal(s syscall.Signal) { _ = syscall.Kill(-p.Process.Pid, s) }

// waitReady waits until run.json is there, and reads it.
func (p *makeProcess) waitReady(t *testing.T) *target {
	t.Helper()
	path := filepath.Join(p.dir, "run.json")
	return eventually(t, startTimeout, func() (*target, error) {
		select {
		case <-p.exited:
			t.Fatalf("the run ended:\n%s", p.outputText())
		default:
		}
		found, err := readTarget(path)
		if err == nil && !strings.Contains(p.outputText(), found.BaseURL+"\n") {
			err = errors.New("run.json is there, and the banner is not: it may be of a run that was killed")
		}
		return found, err
	})
}

// waitExit waits for the end.
func (p *makeProcess) waitExit(t *testing.T, wait time.Duration) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(wait):
		t.Fatalf("it still runs after %s:\n%s", wait, p.outputText())
	}
}

// checkStartRefused starts a run that cannot start: it ends with one line that says what to do.
func checkStartRefused(t *testing.T, dir, expected string, environment ...string) {
	t.Helper()
	p := startMakeRun(t, dir, environment...)
	p.waitExit(t, startTimeout)
	said := []string{}
	for line := range strings.Lines(p.outputText()) {
		if !strings.HasPrefix(line, "make: ") {
			said = append(said, line)
		}
	}
	if p.ProcessState.Success() || len(said) != 1 || !strings.Contains(said[0], expected) {
		t.Errorf("it ended with %s and said %q, want one line about %q", p.ProcessState, said, expected)
	}
}

// waitGone waits until none of these processes lives.
func waitGone(t *testing.T, pids []int) {
	t.Helper()
	eventually(t, 5*time.Second, func() (struct{}, error) {
		for _, pid := range pids {
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				return struct{}{}, fmt.Errorf("process %d lives", pid)
			}
		}
		return struct{}{}, nil
	})
}

// list are the processes of a run.
func (p pids) list() []int {
	found := []int{p.Run}
	if p.DynamoDB != 0 {
		found = append(found, p.DynamoDB)
	}
	for _, function := range p.Functions {
		found = append(found, function...)
	}
	return found
}

// freePorts finds three free ports in a row, as a run with PORT takes them.
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

// cleanEnvironment is our environment without what a make above us adds: the make that we start must not take itself for a
// part of that one, and say where it works.
func cleanEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "MAKE") })
}
