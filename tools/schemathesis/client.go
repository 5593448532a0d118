package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// family is a generator of clients.
type family struct {
	name string
	try  func(ctx context.Context, root, told string) error
}

// clients generates clients from the document with each generator, compiles them, and runs them against the local run.
func clients(ctx context.Context, root, told string) error {
	for _, f := range []family{
		{"openapi-typescript", typescript}, {"openapi-python-client", python}, {"openapi-generator (Java, Go, Python)", generator},
	} {
		began := time.Now()
		if err := f.try(ctx, root, told); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		_, _ = fmt.Fprintf(os.Stdout, "contract: %s: what it makes of the contract compiles, pays and charges (%.0f s)\n", f.name, time.Since(began).Seconds())
	}
	return nil
}

// typescript generates the types of a client with openapi-typescript, compiles a client over them, and runs it.
func typescript(ctx context.Context, root, told string) error {
	sources, dir := filepath.Join(root, "tools", "schemathesis", "client"), filepath.Join(root, ".local", "tools", "contract-client")
	if err := copyFiles(dir, sources, "package.json", "package-lock.json", "tsconfig.json", "client.ts"); err != nil {
		return err
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

// copyFiles copies files of a folder into another, which it makes.
func copyFiles(to, from string, names ...string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
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
	program.Env = append(os.Environ(), "CONTRACT_RUN="+told, "GOWORK=off", "PYTHONDONTWRITEBYTECODE=1")
	output, err := program.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(arguments, " "), err, bytes.TrimSpace(output))
	}
	return nil
}
