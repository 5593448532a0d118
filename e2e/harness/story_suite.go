//go:build linux

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// StorySuite are the tests of package e2e as a program, which plays them against a target, or against a local run of its own
// where RunJSON is empty.
type StorySuite struct {
	// Target is the target's name in the table of exceptions (exceptions_test.go there).
	Target string
	// RunJSON tells of the target. DeployURL is where the tests may ask for a change of the deployment, or empty.
	RunJSON, DeployURL string
	// Variables are more of the program's environment.
	Variables []string
}

// storyBinary is where the program is.
func storyBinary(site Workspace) string { return filepath.Join(site.Dir, "stories.test") }

// BuildStories builds the program.
func BuildStories(ctx context.Context, site Workspace) error {
	return Run(ctx, filepath.Join(site.Dir, "stories.log"), site.Root, os.Environ(), "go", "test", "-c", "-o", storyBinary(site), "./e2e")
}

// Run plays what a test pattern names and another does not; "" is no other. arguments are more flags of the test program.
// What it prints comes to our output at its end.
func (s StorySuite) Run(ctx context.Context, site Workspace, run, skip string, arguments ...string) error {
	arguments = append([]string{"-test.timeout=15m", "-test.run=" + run, "-test.skip=" + skip}, arguments...)
	command := exec.CommandContext(ctx, storyBinary(site), arguments...)
	command.Dir = filepath.Join(site.Root, "e2e")
	command.Env = append(append(os.Environ(), s.Variables...), "E2E_RUN_JSON="+s.RunJSON, "E2E_TARGET="+s.Target, "E2E_DEPLOY_CONTROL_URL="+s.DeployURL)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	output, err := command.CombinedOutput()
	_, _ = os.Stdout.Write(output) // in one piece: others play beside
	if err != nil {
		return fmt.Errorf("the stories %s on %q: %w", run, s.Target, err)
	}
	return nil
}

// RunTests runs the tests of packages, with more in their environment. What they print comes to our output at their end.
func RunTests(ctx context.Context, site Workspace, variables []string, packages ...string) error {
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1", "-timeout=5m"}, packages...)...)
	command.Dir, command.Env = site.Root, append(os.Environ(), variables...)
	output, err := command.CombinedOutput()
	_, _ = os.Stdout.Write(output)
	if err != nil {
		return fmt.Errorf("the tests: %w", err)
	}
	return nil
}
