package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// module is the path of this module; every package of ours begins with it.
const module = "mobilegateway"

// source is one package of ours: its listing, its parsed files and what the type checker says of them.
type source struct {
	Path    string // import path below the module: "shared/money"
	Imports []string
	Fset    *token.FileSet
	Shipped []*file // what the package is built of
	Tests   []*file
	Info    *types.Info
}

// file is one parsed file.
type file struct {
	Name string // relative to the top of the tree
	Text []byte
	AST  *ast.File
}

// listing is what we read of `go list -json`.
type listing struct {
	ImportPath, Dir, Export   string
	GoFiles, IgnoredGoFiles   []string
	TestGoFiles, XTestGoFiles []string
	Imports                   []string
}

// tree is everything the tests look at, loaded once.
type tree struct {
	Top      string
	Packages []*source
	Broken   []error // what could not be judged, because it does not compile
}

// load reads the tree once for all tests.
var load = sync.OnceValues(func() (*tree, error) {
	top, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	rows, err := list(top, "-e", "-export", "-deps", "./...")
	if err != nil {
		return nil, err
	}
	t, fset := &tree{Top: top}, token.NewFileSet()
	exports := map[string]string{}
	for _, row := range rows {
		exports[row.ImportPath] = row.Export
	}
	for _, row := range rows {
		if !ours(row.ImportPath) {
			continue
		}
		s, err := read(top, row, fset, exportImporter(fset, exports))
		if err != nil {
			t.Broken = append(t.Broken, err)
			continue
		}
		t.Packages = append(t.Packages, s)
	}
	return t, nil
})

// TestTreeCompiles fails for every package that the other tests could not judge.
func TestTreeCompiles(t *testing.T) {
	for _, err := range loaded(t).Broken {
		t.Error(err)
	}
}

// loaded gives a test the tree.
func loaded(t *testing.T) *tree {
	t.Helper()
	found, err := load()
	if err != nil {
		t.Fatalf("the tree cannot be read: %v", err)
	}
	return found
}

// ours tells whether an import path is of this module.
func ours(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// list runs `go list -json` at the top of the tree.
func list(top string, args ...string) ([]listing, error) {
	command := exec.Command("go", append([]string{"list", "-json"}, args...)...)
	command.Dir = top
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, complaint.String())
	}
	var rows []listing
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var row listing
		err := decoder.Decode(&row)
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		rows = append(rows, row)
	}
}

// read parses and checks one package.
func read(top string, row listing, fset *token.FileSet, from types.Importer) (*source, error) {
	s := &source{Path: strings.TrimPrefix(row.ImportPath, module+"/"), Imports: row.Imports, Fset: fset}
	var err error
	if s.Shipped, err = s.parse(top, row.Dir, row.GoFiles); err != nil {
		return nil, err
	}
	if s.Tests, err = s.parse(top, row.Dir, slices.Concat(row.TestGoFiles, row.XTestGoFiles)); err != nil {
		return nil, err
	}
	if err := s.check(row.ImportPath, from); err != nil {
		return nil, fmt.Errorf("%s: %w", row.ImportPath, err)
	}
	// Files for other systems are read, but cannot be type-checked here.
	others, err := s.parse(top, row.Dir, row.IgnoredGoFiles)
	s.Shipped = append(s.Shipped, others...)
	return s, err
}

// parse reads files of a folder with their comments. Their names are kept relative to the top of the tree.
func (s *source) parse(top, folder string, names []string) ([]*file, error) {
	var files []*file
	for _, name := range names {
		path := filepath.Join(folder, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		relative, err := filepath.Rel(top, path)
		if err != nil {
			return nil, err
		}
		parsed, err := parser.ParseFile(s.Fset, relative, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, &file{Name: filepath.ToSlash(relative), Text: text, AST: parsed})
	}
	return files, nil
}

// check runs the type checker over the shipped files.
func (s *source) check(path string, from types.Importer) error {
	s.Info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Defs:  map[*ast.Ident]types.Object{},
		Uses:  map[*ast.Ident]types.Object{},
	}
	var files []*ast.File
	for _, f := range s.Shipped {
		files = append(files, f.AST)
	}
	config := types.Config{Importer: from}
	_, err := config.Check(path, s.Fset, files, s.Info)
	return err
}

// exportImporter reads imported packages from the build cache, where `go list -export` put them.
func exportImporter(fset *token.FileSet, exports map[string]string) types.Importer {
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
}

// under tells whether a package is one of the folders, or below one. A pattern's "*" stands for one path element.
func (s *source) under(folders ...string) bool {
	return below(s.Path, folders...)
}

// below tells the same of a path.
func below(path string, folders ...string) bool {
	elements := strings.Split(path, "/")
	for _, folder := range folders {
		wanted := strings.Split(folder, "/")
		if len(elements) < len(wanted) {
			continue
		}
		if same, err := filepath.Match(folder, strings.Join(elements[:len(wanted)], "/")); err == nil && same {
			return true
		}
	}
	return false
}

// ships tells whether a package is part of what is deployed: shared and functions, without conformance suites.
func (s *source) ships() bool {
	return s.under("shared", "functions") && !s.suite()
}

// suite tells whether a package is a conformance suite (ledgertest, operatortest) that only tests import.
func (s *source) suite() bool { return strings.HasSuffix(s.Path, "test") }

// bootstrap tells whether a package is a deployed program.
func (s *source) bootstrap() bool { return below(s.Path, "functions/*/bootstrap") }

// offence is one place that breaks a rule.
type offence struct {
	At  token.Pos
	Say string
}

// rule finds the offences of one package.
type rule func(*source) []offence

// keep runs a rule over the packages that where picks, and fails the test for each offence with its place.
func keep(t *testing.T, check rule, where func(*source) bool) {
	t.Helper()
	seen := 0
	for _, s := range loaded(t).Packages {
		if !where(s) {
			continue
		}
		seen++
		for _, o := range check(s) {
			t.Errorf("%s: %s", s.Fset.Position(o.At), o.Say)
		}
	}
	if seen == 0 {
		t.Error("the rule looked at no package")
	}
}

// each walks the syntax of the files.
func each(files []*file, visit func(ast.Node)) {
	for _, f := range files {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if n != nil {
				visit(n)
			}
			return true
		})
	}
}
