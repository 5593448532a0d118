//go:build linux

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// StorySuite runs the compiled tests of package e2e against a target, or against a local run if RunJSON is empty.
type StorySuite struct {
	// Target is the target's name in e2e/target_limitations_test.go.
	Target string
	// RunJSON is the target's run.json. DeployURL is the address of its deploy control, or empty.
	RunJSON, DeployURL string
	// Variables are added to the tests' environment.
	Variables []string
}

func storyBinary(site Workspace) string { return filepath.Join(site.Dir, "stories.test") }

// Run runs the tests that match run and do not match skip, and logs that they passed; "" skips none. arguments are more
// flags of the test binary.
func (s StorySuite) Run(ctx context.Context, site Workspace, run, skip string, arguments ...string) error {
	arguments = append([]string{"-test.timeout=15m", "-test.run=" + run, "-test.skip=" + skip}, arguments...)
	environment := append(append(os.Environ(), s.Variables...),
		"E2E_RUN_JSON="+s.RunJSON, "E2E_TARGET="+s.Target, "E2E_DEPLOY_CONTROL_URL="+s.DeployURL)
	command := groupCommand(ctx, filepath.Join(site.Root, "e2e"), environment, storyBinary(site), arguments...)
	return runAndPrint(site, command, fmt.Sprintf("the stories %s on %q", run, s.Target))
}

// RunTests runs the tests of packages with more variables in their environment, and logs that they passed.
func RunTests(ctx context.Context, site Workspace, variables []string, packages ...string) error {
	arguments := append([]string{"test", "-count=1", "-timeout=5m"}, packages...)
	command := groupCommand(ctx, site.Root, append(os.Environ(), variables...), "go", arguments...)
	return runAndPrint(site, command, "the package tests")
}

// runAndPrint runs tests and prints their output in one piece, because others print in parallel.
func runAndPrint(site Workspace, command *exec.Cmd, name string) error {
	output, err := command.CombinedOutput()
	_, _ = os.Stdout.Write(output)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	site.Logf("%s passed", name)
	return nil
}
