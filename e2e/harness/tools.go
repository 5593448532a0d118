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
	if err := installNodeLibrary(ctx, site); err != nil {
		return err
	}
	err := Run(ctx, filepath.Join(site.Dir, "modules.log"), site.Root, os.Environ(), "go", "mod", "download")
	if err != nil {
		return err
	}
	log := filepath.Join(site.Dir, "stories.log")
	return Run(ctx, log, site.Root, os.Environ(), "go", "test", "-c", "-o", storyBinary(site), "./e2e")
}

// installNodeLibrary installs the JavaScript library of the stories (e2e/inbox_test.go) if its lock file is newer.
func installNodeLibrary(ctx context.Context, site Workspace) error {
	folder := filepath.Join(site.Root, "e2e", "node")
	installed, err := os.Stat(filepath.Join(folder, "node_modules", ".package-lock.json"))
	pinned, missing := os.Stat(filepath.Join(folder, "package-lock.json"))
	if err == nil && missing == nil && installed.ModTime().After(pinned.ModTime()) {
		return nil
	}
	return Run(ctx, filepath.Join(site.Dir, "npm.log"), folder, os.Environ(),
		"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
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

// Build builds a checkout's bundle as `make build` does. Another build id gives every program other bytes.
func Build(ctx context.Context, site Workspace, checkout, bundle, buildID string, parameters map[string]string) error {
	arguments := []string{"build", "--parallel", "--build-dir", bundle}
	if len(parameters) > 0 {
		arguments = append(append(arguments, "--parameter-overrides"), samcli.ParameterOverrides(parameters)...)
	}
	err := Run(ctx, bundle+".log", checkout, SAMEnvironment(site, buildID), SAMPath(site.Root), arguments...)
	if err == nil {
		return nil
	}
	// SAM's own error does not show why a program does not compile.
	command := exec.CommandContext(ctx, "go", "build", "-o", os.DevNull, "./functions/...")
	command.Dir = checkout
	output, _ := command.CombinedOutput()
	return fmt.Errorf("%w\n%s", err, output)
}
