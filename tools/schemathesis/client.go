package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// client generates a client from the document, compiles it, and runs it against the local run.
func client(ctx context.Context, root, told string) error {
	sources, dir := filepath.Join(root, "tools", "schemathesis", "client"), filepath.Join(root, ".local", "tools", "contract-client")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"package.json", "package-lock.json", "tsconfig.json", "client.ts"} {
		text, err := os.ReadFile(filepath.Join(sources, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	npm := func(arguments string) error { return command(ctx, dir, "", "npm", strings.Fields(arguments)...) }
	if !installed(dir) {
		if err := npm("ci --no-audit --no-fund --ignore-scripts"); err != nil {
			return err
		}
		if err := copyLock(dir); err != nil {
			return err
		}
	}
	tool := func(name string, arguments ...string) error {
		return command(ctx, dir, told, filepath.Join(dir, "node_modules", ".bin", name), arguments...)
	}
	if err := tool("openapi-typescript", filepath.Join(root, "docs", "openapi.yaml"), "-o", "api.ts"); err != nil {
		return err
	}
	if err := tool("tsc", "-p", "."); err != nil {
		return err
	}
	return command(ctx, dir, told, "node", filepath.Join("out", "client.js"))
}

// installed tells whether the modules are those of the lock file.
func installed(dir string) bool {
	wanted, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	held, missing := os.ReadFile(filepath.Join(dir, "node_modules", "installed.json"))
	return err == nil && missing == nil && bytes.Equal(wanted, held)
}

func copyLock(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "node_modules", "installed.json"), text, 0o644)
}

// command runs a program to its end; what it says is the error's text.
func command(ctx context.Context, dir, told, name string, arguments ...string) error {
	program := exec.CommandContext(ctx, name, arguments...)
	program.Dir = dir
	program.Env = append(os.Environ(), "CONTRACT_RUN="+told)
	output, err := program.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(arguments, " "), err, bytes.TrimSpace(output))
	}
	return nil
}
