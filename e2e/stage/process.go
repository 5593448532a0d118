// Package stage holds what the runs on other people's machinery have in common: child processes, the sandbox operator and
// the merchants' inbox on this host, the tools that are installed into the checkout, and the stories themselves.
package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// stopTimeout is how long a child may take to end when asked to, before it is killed.
const stopTimeout = 10 * time.Second

// tail is how much of a failed command's output is shown, in bytes.
const tail = 3000

// Process is a child that runs beside us.
type Process struct {
	command *exec.Cmd
	exited  chan struct{}
	log     string
}

// Start starts a program whose output goes to a file. It ends with us, however we end.
func Start(log string, environment []string, name string, arguments ...string) (*Process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	p := &Process{command: exec.Command(name, arguments...), exited: make(chan struct{}), log: log}
	p.command.Env, p.command.Stdout, p.command.Stderr = environment, out, out
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Pdeathsig follows the thread: it must live as long as the child
		defer runtime.UnlockOSThread()
		defer func() { _ = out.Close() }()
		err := p.command.Start()
		started <- err
		if err == nil {
			_ = p.command.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// Stop asks the child to end, waits, and then ends its whole group.
func (p *Process) Stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
	}
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) // what it started and left behind
	<-p.exited
}

// Answers waits until an address answers, whatever it says.
func (p *Process) Answers(ctx context.Context, address string) error {
	client := &http.Client{Timeout: time.Second}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err == nil {
			return answer.Body.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w\n%s", address, ctx.Err(), end(p.log))
		case <-p.exited:
			return fmt.Errorf("%s ended before it answered:\n%s", p.command.Path, end(p.log))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Run runs a command to its end. Its output goes to a file, the end of which is the error's text.
func Run(ctx context.Context, log, dir string, environment []string, name string, arguments ...string) error {
	out, err := os.Create(log)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir, command.Env, command.Stdout, command.Stderr = dir, environment, out, out
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	err = errors.Join(command.Run(), out.Close())
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, end(log))
	}
	return nil
}

// end is the last part of a file.
func end(path string) []byte {
	text, _ := os.ReadFile(path) // it is for an error's text
	return bytes.TrimSpace(text[max(0, len(text)-tail):])
}
