package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// alert is a finding as vale prints it.
type alert struct {
	Check   string
	Message string
	Line    int
	Span    []int
}

// runVale writes the pages to a folder of their own, runs vale there and converts its alerts to places in the tree.
func runVale(ctx context.Context, o options, pages []*page) ([]finding, error) {
	program := o.vale
	if program == "" {
		out, err := exec.CommandContext(ctx, "go", "tool", "-n", "-modfile=tools/prose/vale/go.mod", "vale").Output()
		if err != nil {
			return nil, fmt.Errorf("build vale (the Go module proxy has to be reachable once): %w", failure(err))
		}
		program = strings.TrimSpace(string(out))
	}
	config, err := filepath.Abs(filepath.Join(o.rules, "vale.ini"))
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "prose")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	for i, p := range pages {
		if err := os.WriteFile(filepath.Join(folder, strconv.Itoa(i)+".md"), []byte(p.String()), 0o600); err != nil {
			return nil, err
		}
	}
	command := exec.CommandContext(ctx, program, "--config", config, "--no-global", "--no-exit", "--output=JSON", ".")
	command.Dir = folder
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("vale: %w: %s", failure(err), out)
	}
	var alerts map[string][]alert
	if err := json.Unmarshal(out, &alerts); err != nil {
		return nil, fmt.Errorf("vale printed no JSON: %w: %s", err, out)
	}
	var found []finding
	for i, p := range pages {
		for _, a := range alerts[strconv.Itoa(i)+".md"] {
			rule := strings.ToLower(strings.TrimPrefix(a.Check, "Prose."))
			found = append(found, finding{p.name, p.source(a.Line, a.Span[0]), rule, a.Message})
		}
	}
	return found, nil
}

// failure adds what a program printed on its standard error.
func failure(err error) error {
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	return err
}
