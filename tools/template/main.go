// Package main checks the CloudFormation templates of the tree with cfn-lint and checkov: each file that calls itself one,
// as it stands and, where it has lines marked #gradual, with these in force. A finding of checkov may be suppressed where
// it comes up, under the resource's Metadata.checkov.skip, with its reason as the comment; a suppression without a reason, or
// of a check that would pass, is a finding too. cfn-lint's exceptions are .cfnlintrc. And it has SAM transform the gradual
// template for two releases, which must be two versions of each function.
//
//	go run ./tools/template
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// The programs, as e2e/tools/install places them.
const (
	cfnlint = ".local/tools/sam-cli/bin/cfn-lint"
	checkov = ".local/tools/checkov/bin/checkov"
)

// work is where the variants are written, below the top of the tree.
const work = ".local/template"

// errFound ends a run whose findings have been printed.
var errFound = errors.New("found")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := check(ctx, ".", os.Stdout)
	stop()
	if err != nil {
		if !errors.Is(err, errFound) {
			fmt.Fprintf(os.Stderr, "template: cannot tell: %v\n", err)
		}
		os.Exit(1)
	}
}

// check runs both programs over all templates of the tree at top and says what they found.
func check(ctx context.Context, top string, out io.Writer) error {
	for _, tool := range []string{"sam", "checkov"} {
		if _, err := run(ctx, top, "e2e/tools/install", tool); err != nil {
			return err
		}
	}
	templates, err := find(ctx, top)
	if err != nil {
		return err
	}
	files, err := variants(top, templates)
	if err != nil {
		return err
	}
	var linted, audited, released []string
	var lintErr, auditErr, releaseErr error
	var all sync.WaitGroup
	all.Go(func() { linted, lintErr = lint(ctx, top, files) })
	all.Go(func() { audited, auditErr = audit(ctx, top, files, out) })
	all.Go(func() { released, releaseErr = releases(ctx, top, filepath.Join(work, "gradual", "template.yaml")) })
	all.Wait()
	if err := errors.Join(lintErr, auditErr, releaseErr); err != nil {
		return err
	}
	for _, finding := range slices.Concat(linted, audited, released) {
		fmt.Fprintf(out, "template: %s\n", finding)
	}
	if n := len(linted) + len(audited) + len(released); n > 0 {
		fmt.Fprintf(out, "template: %d found: mend the template, or suppress the check with its reason (checkov: the resource's Metadata; cfn-lint: .cfnlintrc)\n", n)
		return errFound
	}
	fmt.Fprintf(out, "template: cfn-lint and checkov find nothing in %s\n", strings.Join(files, ", "))
	return nil
}

// declaration is the line by which a file calls itself a template.
var declaration = regexp.MustCompile(`(?m)^\s*"?(AWSTemplateFormatVersion|Transform)"?\s*:`)

// find gives the templates that git sees in the tree, but for test data.
func find(ctx context.Context, top string) ([]string, error) {
	list, err := run(ctx, top, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.yaml", "*.yml", "*.json", "*.template")
	if err != nil {
		return nil, err
	}
	var found []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(top, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not yet committed
		}
		if err != nil {
			return nil, err
		}
		if declaration.Match(text) && !slices.Contains(strings.Split(name, "/"), "testdata") {
			found = append(found, name)
		}
	}
	if !slices.Contains(found, "template.yaml") {
		return nil, fmt.Errorf("template.yaml is not among the templates %q", found)
	}
	return found, nil
}

// variants writes beside the templates themselves what they are with their #gradual lines in force, and gives all names.
func variants(top string, templates []string) ([]string, error) {
	if err := os.RemoveAll(filepath.Join(top, work)); err != nil {
		return nil, err
	}
	files := slices.Clone(templates)
	for _, name := range templates {
		text, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			return nil, err
		}
		gradual := marked.ReplaceAll(text, nil)
		if len(gradual) == len(text) {
			continue
		}
		variant := filepath.Join(work, "gradual", name)
		if err := write(filepath.Join(top, variant), gradual); err != nil {
			return nil, err
		}
		files = append(files, variant)
	}
	return files, nil
}

// marked is what stands before a line that takes part in gradual deployments alone.
var marked = regexp.MustCompile(`(?m)^#gradual`)

// lint gives what cfn-lint finds, a line each.
func lint(ctx context.Context, top string, files []string) ([]string, error) {
	var found []string
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(text), "ignore_checks") {
			found = append(found, name+": cfn-lint is told what to ignore in .cfnlintrc alone, where its reason stands")
		}
	}
	out, err := run(ctx, top, filepath.Join(top, cfnlint), append([]string{"--config-file", ".cfnlintrc", "--format", "parseable", "--"}, files...)...)
	var failed *exec.ExitError
	switch {
	case err == nil:
		return found, nil
	case errors.As(err, &failed) && len(out) > 0:
		return append(found, strings.Split(strings.TrimSpace(string(out)), "\n")...), nil
	default:
		return nil, err
	}
}

// run runs a program in a folder and gives what it printed, with an error also its complaint.
func run(ctx context.Context, folder, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = folder
	var complaint strings.Builder
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return out, fmt.Errorf("%s: %w: %s", name, err, complaint.String())
	}
	return out, nil
}

// write makes a file and the folders above it.
func write(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}
