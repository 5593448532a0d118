//go:build linux

// Package stage holds what the runs on other people's machinery have in common: child processes, the sandbox operator and
// the merchants' inbox on this host, the tools that are installed into the checkout, and the stories themselves.
package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// maxTailBytes is how much of a failed command's output is shown, in bytes.
const maxTailBytes = 3000

// Process is a child that runs beside us, as long as we do.
type Process struct {
	command *exec.Cmd
	exited  chan struct{}
	log     string
}

// Start starts a program whose output goes to a file. It ends with the worker that started it.
func Start(log string, environment []string, name string, arguments ...string) (*Process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	p := &Process{command: exec.Command(name, arguments...), exited: make(chan struct{}), log: log}
	p.command.Env, p.command.Stdout, p.command.Stderr = environment, out, out
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.command.Wait()
		close(p.exited)
	}()
	return p, nil
}

// WaitReady waits until an address answers, whatever it says.
func (p *Process) WaitReady(ctx context.Context, address string) error {
	client := &http.Client{Timeout: time.Second}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		ready, err := client.Do(request)
		if err == nil {
			return ready.Body.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w\n%s", address, ctx.Err(), fileTail(p.log))
		case <-p.exited:
			return fmt.Errorf("%s ended before it answered:\n%s", p.command.Path, fileTail(p.log))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Run runs a command to its end, or until ctx ends. Its output goes to a file, the end of which is the error's text.
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
		return fmt.Errorf("%s: %w\n%s", command, err, fileTail(log))
	}
	return nil
}

// fileTail is the last part of a file.
func fileTail(path string) []byte {
	text, _ := os.ReadFile(path) // it is for an error's text
	return bytes.TrimSpace(text[max(0, len(text)-maxTailBytes):])
}

// RunParallel does all side by side, and waits for all; the first to fail ends the others, and its error is returned.
func RunParallel(ctx context.Context, all ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for _, task := range all {
		group.Go(func() {
			if err := task(ctx); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}
