//go:build linux

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mobilegateway/deploy/samcli"
)

// ToolsDir returns the folder of the installed tools.
func ToolsDir(root string) string { return filepath.Join(root, ".local", "tools") }

// prepare installs the tools and the dependencies of the stories, because later steps may have no network. It is the
// first worker's task.
func (e Isolation) prepare(ctx context.Context, site Workspace) error {
	if len(e.Tools) == 0 {
		return nil
	}
	for _, name := range e.Tools {
		command := exec.CommandContext(ctx, filepath.Join(site.Root, "e2e", "tools", "install"), name)
		command.Stdout, command.Stderr = os.Stderr, os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("install %s: %w", name, err)
		}
	}
	if err := InstallNodeLibrary(ctx, site.Root); err != nil {
		return err
	}
	download := Command{Log: filepath.Join(site.Dir, "modules.log"), Dir: site.Root}
	if err := download.Run(ctx, "go", "mod", "download"); err != nil {
		return err
	}
	compile := Command{Log: filepath.Join(site.Dir, "stories.log"), Dir: site.Root}
	return compile.Run(ctx, "go", "test", "-c", "-o", storyBinary(site), "./e2e")
}

// SAMPath returns the path of the installed SAM CLI.
func SAMPath(root string) string { return filepath.Join(ToolsDir(root), "sam-cli", "bin", "sam") }

// SAMEnvironment returns the environment of the SAM CLI. SAM sends no telemetry, writes nothing into the home folder
// and uses no AWS account of the user. It builds programs with the flags of the Makefile's DEPLOY and a build id.
func SAMEnvironment(site Workspace, buildID string) []string {
	samDir := filepath.Join(site.Dir, "sam")
	withoutAWS := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "AWS_")
	})
	return append(withoutAWS,
		"PYTHONDONTWRITEBYTECODE=1", "SAM_CLI_TELEMETRY=0",
		"__SAM_CLI_APP_DIR="+samDir, "SAM_LAYER_CACHE_BASEDIR="+filepath.Join(samDir, "layers"),
		"AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull, "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"CGO_ENABLED=0", "GOFLAGS=-tags=lambda.norpc -trimpath -buildvcs=false '-ldflags=-s -w -buildid="+buildID+"'",
	)
}

// Bundle is a bundle to build into Dir, from the sources in Checkout.
type Bundle struct {
	Checkout, Dir string
	BuildID       string // another one gives every program other bytes
	Parameters    map[string]string
}

// Build builds the bundle as `make build` does.
func (b Bundle) Build(ctx context.Context, site Workspace) error {
	arguments := []string{"build", "--parallel", "--build-dir", b.Dir}
	if len(b.Parameters) > 0 {
		arguments = append(append(arguments, "--parameter-overrides"), samcli.ParameterOverrides(b.Parameters)...)
	}
	build := Command{Log: b.Dir + ".log", Dir: b.Checkout, Environment: SAMEnvironment(site, b.BuildID)}
	err := build.Run(ctx, SAMPath(site.Root), arguments...)
	if err == nil {
		return nil
	}
	// SAM's own error does not show why a program does not compile.
	command := exec.CommandContext(ctx, "go", "build", "-o", os.DevNull, "./functions/...")
	command.Dir = b.Checkout
	output, _ := command.CombinedOutput()
	return fmt.Errorf("%w\n%s", err, output)
}
