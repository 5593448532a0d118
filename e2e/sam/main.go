// Command sam builds the bundle with the SAM CLI, looks at what it built, and runs it as SAM does on a developer's
// machine: `make e2e-sam`.
//
// The artifacts are those that would be deployed, for arm64 whatever this machine is. Where a container engine runs
// already it is used. Else all that follows runs in namespaces of its own, an engine among it: when the first process there
// ends, however it ends, no process, mount or network is left.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"mobilegateway/e2e/stage"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	inside := flag.Bool("inside", false, "play on an engine of our own, in namespaces of our own")
	flag.Parse()
	err := errors.New("the checkout is not found")
	if root, found := stage.Root(); found == nil {
		r := &runner{root: root, dir: filepath.Join(root, ".local", "e2e-sam"), began: time.Now()}
		if *inside {
			err = r.playInside(ctx, flag.Args())
		} else {
			err = r.run(ctx, flag.Args())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e-sam:", err)
		os.Exit(1)
	}
}

// runner goes through the steps.
type runner struct {
	root, dir string
	began     time.Time
}

func (r *runner) say(format string, values ...any) {
	fmt.Fprintf(os.Stdout, "[%4.0fs] %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, values...))
}

// bundle is where the checked artifacts are.
func (r *runner) bundle() string { return filepath.Join(r.dir, "bundle") }

// run does everything once. arguments go to the tests.
func (r *runner) run(ctx context.Context, arguments []string) error {
	if err := stage.Install(ctx, r.root, "sam", "dynamodb", "engine"); err != nil {
		return err
	}
	if err := os.RemoveAll(r.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	r.say("tools are there")
	if err := r.checkBundle(ctx); err != nil {
		return err
	}
	forget, err := emulate(r.root)
	if err != nil {
		return err
	}
	defer forget()
	if runs(ctx, r.root, os.Getenv("DOCKER_HOST")) {
		r.say("a container engine runs here already")
		return r.play(ctx, os.Getenv("DOCKER_HOST"), arguments)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	spaces := append([]string{"--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", self, "-inside", "--"}, arguments...)
	command := exec.CommandContext(ctx, "unshare", spaces...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	command.Cancel = func() error { return command.Process.Kill() }
	return command.Run()
}

// playInside brings up the network and the engine, and plays.
func (r *runner) playInside(ctx context.Context, arguments []string) error {
	if output, err := exec.CommandContext(ctx, "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("bring up the loopback: %w: %s", err, output)
	}
	host, stop, err := startEngine(ctx, r.root, r.dir)
	if err != nil {
		return err
	}
	defer stop()
	r.say("the container engine runs")
	return r.play(ctx, host, arguments)
}
