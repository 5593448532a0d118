//go:build linux

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"mobilegateway/internal/childprocess"
)

// maxTailBytes is how much of a failed command's output an error shows, in bytes.
const maxTailBytes = 3000

// Process is a child process that runs until this worker ends.
type Process struct {
	command *exec.Cmd
	exited  chan struct{}
	log     string
}

// Start starts a program and writes its output to a file. The program ends with the worker that started it.
func Start(log string, environment []string, name string, arguments ...string) (*Process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	p := &Process{command: exec.Command(name, arguments...), exited: make(chan struct{}), log: log}
	p.command.Env, p.command.Stdout, p.command.Stderr = environment, out, out
	if err := childprocess.Start(p.command, func(error) { close(p.exited) }); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// WaitReady waits until an address returns any HTTP response. It fails early if the process ends.
func (p *Process) WaitReady(ctx context.Context, timeout time.Duration, address string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		<-p.exited
		cancel(fmt.Errorf("%s ended before it responded", p.command.Path))
	}()
	client := &http.Client{Timeout: time.Second}
	err := Poll(ctx, timeout, func() error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("%s does not respond: %w\n%s", address, err, fileTail(p.log))
	}
	return nil
}

// Command is a program that runs to its end. Its output goes to the file Log.
type Command struct {
	Log, Dir    string
	Environment []string // nil: this process's own
}

// Run runs a program until it ends or ctx ends. An error shows the end of its output.
func (c Command) Run(ctx context.Context, name string, arguments ...string) error {
	out, err := os.Create(c.Log)
	if err != nil {
		return err
	}
	command := groupCommand(ctx, c.Dir, c.Environment, name, arguments...)
	command.Stdout, command.Stderr = out, out
	err = errors.Join(command.Run(), out.Close())
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, fileTail(c.Log))
	}
	return nil
}

// groupCommand returns a command in a process group of its own, which is killed as a whole when ctx ends.
func groupCommand(ctx context.Context, dir string, environment []string, name string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir, command.Env = dir, environment
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	return command
}

// fileTail returns the last part of a file, for the text of an error.
func fileTail(path string) []byte {
	text, _ := os.ReadFile(path) // without it the error is still useful
	return bytes.TrimSpace(text[max(0, len(text)-maxTailBytes):])
}

// RunParallel runs all tasks in parallel and waits for all. The first error cancels the other tasks and is returned.
func RunParallel(ctx context.Context, all ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, task := range all {
		group.Go(func() error { return task(ctx) })
	}
	return group.Wait()
}
