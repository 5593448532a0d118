package stage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Tools is the folder of the installed tools.
func Tools(root string) string { return filepath.Join(root, ".local", "tools") }

// Install installs tools into the checkout, where they are not there yet: sam, localstack, dynamodb or engine.
func Install(ctx context.Context, root string, names ...string) error {
	for _, name := range names {
		command := exec.CommandContext(ctx, filepath.Join(root, "e2e", "tools", "install"), name)
		command.Stdout, command.Stderr = os.Stderr, os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("install %s: %w", name, err)
		}
	}
	return nil
}

// SAM is the installed SAM CLI.
func SAM(root string) string { return filepath.Join(Tools(root), "sam-cli", "bin", "sam") }

// SAMEnvironment is ours with what SAM needs: nothing is sent home, and programs are built by the flags of the Makefile's
// DEPLOY, with a build id where one is given.
func SAMEnvironment(buildID string) []string {
	return append(os.Environ(),
		"SAM_CLI_TELEMETRY=0", "CGO_ENABLED=0",
		"GOFLAGS=-tags=lambda.norpc -trimpath -buildvcs=false '-ldflags=-s -w -buildid="+buildID+"'",
	)
}

// Overrides writes parameters as SAM wants them.
func Overrides(parameters map[string]string) []string {
	var list []string
	for name, value := range parameters {
		list = append(list, fmt.Sprintf("ParameterKey=%s,ParameterValue=%s", name, value))
	}
	return list
}

// GoTest is the go command that runs the tests of package e2e.
func GoTest(ctx context.Context, root string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1", "-timeout=15m", "./e2e"}, arguments...)...)
	command.Dir = root
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	return command
}

// Root is the checkout that holds the working directory.
func Root() (string, error) {
	output, err := exec.Command("go", "env", "GOMOD").Output()
	path := strings.TrimSpace(string(output))
	if err != nil || filepath.Base(path) != "go.mod" {
		return "", fmt.Errorf("start this inside the checkout: %w", err)
	}
	return filepath.Dir(path), nil
}
