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
)

// ToolsDir is the folder of the installed tools.
func ToolsDir(root string) string { return filepath.Join(root, ".local", "tools") }

// InstallTools installs tools into the checkout, where they are not there yet: sam, localstack, dynamodb or engine.
func InstallTools(ctx context.Context, root string, names ...string) error {
	for _, name := range names {
		command := exec.CommandContext(ctx, filepath.Join(root, "e2e", "tools", "install"), name)
		command.Stdout, command.Stderr = os.Stderr, os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("install %s: %w", name, err)
		}
	}
	return nil
}

// SAMPath is the installed SAM CLI.
func SAMPath(root string) string { return filepath.Join(ToolsDir(root), "sam-cli", "bin", "sam") }

// SAMEnvironment is ours with what SAM needs: nothing is sent home and nothing written into the home folder, no account of
// whoever starts it is used, and programs are built by the flags of the Makefile's DEPLOY, with a build id where one is given.
func SAMEnvironment(site Workspace, buildID string) []string {
	samDir := filepath.Join(site.Dir, "sam")
	cleanEnvironment := slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "AWS_") })
	return append(cleanEnvironment,
		"PYTHONDONTWRITEBYTECODE=1", "SAM_CLI_TELEMETRY=0", "__SAM_CLI_APP_DIR="+samDir, "SAM_LAYER_CACHE_BASEDIR="+filepath.Join(samDir, "layers"),
		"AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull, "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"CGO_ENABLED=0", "GOFLAGS=-tags=lambda.norpc -trimpath -buildvcs=false '-ldflags=-s -w -buildid="+buildID+"'",
	)
}

// Build builds a checkout's bundle as `make build` does, its programs with a build id of their own where one is given.
func Build(ctx context.Context, site Workspace, checkout, bundle, buildID string, parameters map[string]string) error {
	arguments := []string{"build", "--parallel", "--build-dir", bundle}
	if len(parameters) > 0 {
		arguments = append(append(arguments, "--parameter-overrides"), ParameterOverrides(parameters)...)
	}
	err := Run(ctx, bundle+".log", checkout, SAMEnvironment(site, buildID), SAMPath(site.Root), arguments...)
	if err == nil {
		return nil
	}
	// Where a program does not compile, SAM builds something else, and tells why that failed.
	command := exec.CommandContext(ctx, "go", "build", "-o", os.DevNull, "./functions/...")
	command.Dir = checkout
	output, _ := command.CombinedOutput()
	return fmt.Errorf("%w\n%s", err, output)
}

// ParameterOverrides writes parameters as SAM wants them.
func ParameterOverrides(parameters map[string]string) []string {
	var list []string
	for name, value := range parameters {
		list = append(list, fmt.Sprintf("ParameterKey=%s,ParameterValue=%s", name, value))
	}
	return list
}

// FetchDependencies fetches the Go modules that are missing, and the stories' JavaScript library (e2e/inbox_test.go), and builds
// the stories: what comes later may have no network.
func FetchDependencies(ctx context.Context, site Workspace) error {
	folder := filepath.Join(site.Root, "e2e", "node")
	installed, err := os.Stat(filepath.Join(folder, "node_modules", ".package-lock.json"))
	pinned, missing := os.Stat(filepath.Join(folder, "package-lock.json"))
	if err != nil || missing != nil || !installed.ModTime().After(pinned.ModTime()) {
		if err := Run(ctx, filepath.Join(site.Dir, "npm.log"), folder, os.Environ(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
			return err
		}
	}

	if err := Run(ctx, filepath.Join(site.Dir, "modules.log"), site.Root, os.Environ(), "go", "mod", "download"); err != nil {
		return err
	}
	return BuildStories(ctx, site)
}
