// Package main checks the licence of everything this project is built, tested and checked with: the modules of every
// go.mod, the packages of every npm and Python lock, the artifacts of every pom.xml. What may be is policy.go: what ships in
// the functions may have fewer licences than what only runs beside them. A dependency whose licence nobody can tell is refused.
//
// It reads what the package managers recorded and fetched, and finds the lists by their names, so that a new one is
// looked at without a word here. The container engine of e2e/tools/install is not among them: those are packages of Debian,
// which vouches for their licences itself.
//
//	go run ./tools/licences
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// dependency is one package of others, as one list names it.
type dependency struct {
	Kind    string // a name of kinds
	Name    string
	Version string
	List    string // the file that asks for it, relative to the top of the tree
	Licence string // what it says of itself, made an SPDX expression where possible; "" for nothing
	Ships   bool   // it is linked into a deployed program
}

// errRefused ends a run whose findings have been printed.
var errRefused = errors.New("refused")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := check(ctx, ".", os.Stdout)
	stop()
	if err != nil {
		if !errors.Is(err, errRefused) {
			fmt.Fprintf(os.Stderr, "licences: cannot tell: %v\n", err)
		}
		os.Exit(1)
	}
}

// check collects all dependencies of the tree at top, judges them and says what it found.
func check(ctx context.Context, top string, out io.Writer) error {
	found, err := collect(ctx, top)
	if err != nil {
		return err
	}
	if err := record(filepath.Join(top, ".local", "licences.txt"), found); err != nil {
		return err
	}
	faults := judgeAll(found, grants, exceptions)
	for _, fault := range faults {
		fmt.Fprintf(out, "licences: %s\n", fault)
	}
	if len(faults) > 0 {
		fmt.Fprintf(out, "licences: %d refused: do without, or give the licence or the package a row with its reason in tools/licences/policy.go\n", len(faults))
		return errRefused
	}
	fmt.Fprintf(out, "licences: shipped: %s\n", summary(found, true))
	fmt.Fprintf(out, "licences: only built, tested and checked with: %s\n", summary(found, false))
	fmt.Fprintf(out, "licences: all %d are allowed by tools/licences/policy.go; the list is .local/licences.txt\n", len(found))
	return nil
}

// kinds are the lists of dependencies, by the patterns of their names, and who reads them: a list is read by the first that
// matches. One without a reader is refused. The order is that of the report.
var kinds = []struct {
	name, list string
	read       func(ctx context.Context, top string, lists []string) ([]dependency, error)
}{
	{"go", "go.mod", modules},
	{"npm", "package-lock.json", npmPackages},
	{"maven", "pom.xml", artifacts},
	{"", "go.work", nil},
	{"", "Cargo.lock", nil},
	{"", "yarn.lock", nil},
	{"", "pnpm-lock.yaml", nil},
	{"", "poetry.lock", nil},
	{"", "Gemfile*", nil},
	{"", "composer.*", nil},
	{"", "build.gradle*", nil},
	{"", "*.csproj", nil},
	{"", "pyproject.toml", nil},
	{"", "requirements*.txt", nil},
	{"python", "*.lock", pythonPackages},
}

// collect reads every list of dependencies in the tree.
func collect(ctx context.Context, top string) ([]dependency, error) {
	lists, err := tracked(ctx, top)
	if err != nil {
		return nil, err
	}
	var found []dependency
	for _, kind := range kinds {
		var matching []string
		lists = slices.DeleteFunc(lists, func(name string) bool {
			matched, _ := path.Match(kind.list, path.Base(name))
			if matched {
				matching = append(matching, name)
			}
			return matched
		})
		if len(matching) == 0 {
			continue
		}
		if kind.read == nil {
			return nil, fmt.Errorf("%s lists dependencies in a form that tools/licences does not read: teach it, or use another", matching[0])
		}
		more, err := kind.read(ctx, top, matching)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	slices.SortFunc(found, func(a, b dependency) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version), strings.Compare(a.List, b.List))
	})
	return found, nil
}

// tracked is every file of the tree as git sees it, but for test data.
func tracked(ctx context.Context, top string) ([]string, error) {
	out, err := run(ctx, top, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if _, err := os.Stat(filepath.Join(top, name)); err == nil && !slices.Contains(strings.Split(name, "/"), "testdata") {
			names = append(names, name)
		}
	}
	return names, nil
}

// run runs a program in a folder and gives what it printed, or an error with its complaint.
func run(ctx context.Context, folder string, environment []string, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = folder
	command.Env = append(os.Environ(), environment...)
	var complaint strings.Builder
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s in %s: %w: %s%s", name, args[0], folder, err, out, complaint.String())
	}
	return out, nil
}

// record writes the list for people.
func record(name string, found []dependency) error {
	var text strings.Builder
	for _, d := range found {
		use := "used"
		if d.Ships {
			use = "ships"
		}
		fmt.Fprintf(&text, "%s\t%s\t%s %s\t%s\t%s\n", use, d.Kind, d.Name, d.Version, d.Licence, d.List)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text.String()), 0o644)
}

// summary counts what ships, or what does not, by kind.
func summary(found []dependency, ships bool) string {
	var parts []string
	for _, kind := range kinds {
		names := map[string]bool{}
		for _, d := range found {
			if d.Ships == ships && d.Kind == kind.name {
				names[d.Name+" "+d.Version] = true
			}
		}
		if len(names) > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", len(names), kind.name))
		}
	}
	return strings.Join(parts, ", ")
}
