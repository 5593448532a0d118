// Package main checks the language of the tree. vale applies the rules of styles/ to comments, texts and pages.
// names.txt lists the words that no name declared in Go may have. README.md explains how to run it and how to add
// an exception.
//
//	go run ./tools/prose [-count] [path ...]
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// finding is one offence.
type finding struct {
	path    string
	line    int
	rule    string
	message string
}

// options are the arguments of the command line.
type options struct {
	count bool
	vale  string
	rules string
	paths []string
}

// errFound ends a run whose findings have been printed.
var errFound = errors.New("found")

func main() {
	var o options
	flag.BoolVar(&o.count, "count", false, "print the number of findings of each rule in each directory")
	flag.StringVar(&o.vale, "vale", "", "the vale program; by default the version that vale/go.mod pins")
	flag.StringVar(&o.rules, "rules", "tools/prose", "the folder of the rules")
	flag.Parse()
	o.paths = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := check(ctx, o, os.Stdout)
	stop()
	if err != nil {
		if !errors.Is(err, errFound) {
			fmt.Fprintf(os.Stderr, "prose: the check could not run: %v\n", err)
		}
		os.Exit(1)
	}
}

// check prints the findings of the given paths, or of the whole tree.
func check(ctx context.Context, o options, out io.Writer) error {
	pages, err := pagesOf(ctx, o.paths)
	if err != nil {
		return err
	}
	planted, err := readPlanted(filepath.Join(o.rules, "planted.txt"))
	if err != nil {
		return err
	}
	found, err := runVale(ctx, o, append(pages, planted.pages()...))
	if err != nil {
		return err
	}
	if found, err = planted.remove(found); err != nil {
		return err
	}
	names, err := readNames(filepath.Join(o.rules, "names.txt"))
	if err != nil {
		return err
	}
	for _, p := range pages {
		found = append(found, checkNames(names, p)...)
	}
	allowed, err := readExceptions(filepath.Join(o.rules, "exceptions.txt"))
	if err != nil {
		return err
	}
	found = allowed.remove(found)
	if len(o.paths) == 0 {
		found = append(found, allowed.unused()...)
	}
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.path, b.path), a.line-b.line, cmp.Compare(a.rule+a.message, b.rule+b.message))
	})
	found = slices.Compact(found)
	report(out, found, o.count)
	if len(found) > 0 {
		fmt.Fprintf(out, "prose: %d findings: rewrite each as its message says (rules: tools/prose/README.md)\n",
			len(found))
		return errFound
	}
	fmt.Fprintf(out, "prose: 0 findings in %d files; vale found all %d planted offences\n", len(pages), len(planted))
	return nil
}

// report prints one finding a line, or how many each rule has in each directory.
func report(out io.Writer, found []finding, count bool) {
	if !count {
		for _, f := range found {
			fmt.Fprintf(out, "%s:%d: %s: %s\n", f.path, f.line, f.rule, f.message)
		}
		return
	}
	counts := map[string]int{}
	for _, f := range found {
		counts[f.rule+" "+filepath.Dir(f.path)]++
		counts[f.rule+" total"]++
	}
	rows := make([]string, 0, len(counts))
	for row := range counts {
		rows = append(rows, row)
	}
	slices.Sort(rows)
	for _, row := range rows {
		fmt.Fprintf(out, "%6d %s\n", counts[row], row)
	}
}

// notChecked are test data, and the rules themselves.
var notChecked = regexp.MustCompile(`(^|/)testdata/|^tools/prose/.*\.(txt|yml|ini)$`)

// pagesOf reads the prose of the files that git knows below the paths.
func pagesOf(ctx context.Context, paths []string) ([]*page, error) {
	arguments := []string{"ls-files", "-z", "--cached", "--others", "--exclude-standard"}
	if len(paths) > 0 {
		arguments = append(append(arguments, "--error-unmatch", "--"), paths...)
	}
	out, err := exec.CommandContext(ctx, "git", arguments...).Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", failure(err))
	}
	var pages []*page
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if notChecked.MatchString(name) {
			continue
		}
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not yet committed
		}
		if err != nil {
			return nil, err
		}
		p, err := read(name, string(text))
		if err != nil {
			return nil, err
		}
		if p != nil {
			pages = append(pages, p)
		}
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("no file with prose is below %q", paths)
	}
	return pages, nil
}

// rowsOf reads a file of rows whose fields are separated by " | ", without blank lines and comments.
func rowsOf(name string, fields int) ([][]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for line := range strings.SplitSeq(string(text), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			row := strings.Split(line, " | ")
			if len(row) != fields {
				return nil, fmt.Errorf("%s: %q has %d fields, not %d", name, line, len(row), fields)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}
