package imports

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

// modulePath is the path of this module: the path of each package of ours begins with it.
const modulePath = "mobilegateway"

// goPackage is one package of ours: its listing, its parsed files and their types.
type goPackage struct {
	Path      string // import path below the module: "shared/money"
	Imports   []string
	Fset      *token.FileSet
	Files     []*parsedFile // all files but the tests
	TestFiles []*parsedFile
	Info      *types.Info
}

// parsedFile is one parsed file.
type parsedFile struct {
	Name string // relative to the top of the tree
	Text []byte
	AST  *ast.File
}

// packageListing is a row of `go list -json`, as far as the tests use it.
type packageListing struct {
	ImportPath, Dir, Export   string
	GoFiles, IgnoredGoFiles   []string
	TestGoFiles, XTestGoFiles []string
	Imports                   []string
}

// packageTree is all that the tests check.
type packageTree struct {
	Root       string
	Packages   []*goPackage
	LoadErrors []error // packages that do not compile
}

// parseTree reads the tree once for all tests.
var parseTree = sync.OnceValues(func() (*packageTree, error) {
	top, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	rows, err := listPackages(top, nil, "-e", "-export", "-deps", "./...")
	if err != nil {
		return nil, err
	}
	t, fset := &packageTree{Root: top}, token.NewFileSet()
	exports := map[string]string{}
	for _, row := range rows {
		exports[row.ImportPath] = row.Export
	}
	imported := exportImporter(fset, exports) // reads each package once for all that import it
	for _, row := range rows {
		if !isOwnPackage(row.ImportPath) {
			continue
		}
		s, err := readPackage(top, row, fset, imported)
		if err != nil {
			t.LoadErrors = append(t.LoadErrors, err)
			continue
		}
		t.Packages = append(t.Packages, s)
	}
	return t, nil
})

// TestTreeCompiles fails for each package that the other tests could not check.
func TestTreeCompiles(t *testing.T) {
	for _, err := range loadTree(t).LoadErrors {
		t.Error(err)
	}
}

// loadTree returns the tree.
func loadTree(t *testing.T) *packageTree {
	t.Helper()
	found, err := parseTree()
	if err != nil {
		t.Fatalf("the tree cannot be read: %v", err)
	}
	return found
}

// readTreeFile returns the text of a file of the tree.
func readTreeFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(loadTree(t).Root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// isOwnPackage reports whether an import path is of this module.
func isOwnPackage(path string) bool {
	return path == modulePath || strings.HasPrefix(path, modulePath+"/")
}

// listPackages runs `go list -json` in a folder, with an environment added to that of the test.
func listPackages(top string, environment []string, args ...string) ([]packageListing, error) {
	command := exec.Command("go", append([]string{"list", "-json"}, args...)...)
	command.Dir = top
	command.Env = append(os.Environ(), environment...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	var rows []packageListing
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var row packageListing
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

// readPackage parses and type-checks one package.
func readPackage(top string, row packageListing, fset *token.FileSet, from types.Importer) (*goPackage, error) {
	s := &goPackage{Path: strings.TrimPrefix(row.ImportPath, modulePath+"/"), Imports: row.Imports, Fset: fset}
	var err error
	if s.Files, err = s.parseFiles(top, row.Dir, row.GoFiles); err != nil {
		return nil, err
	}
	if s.TestFiles, err = s.parseFiles(top, row.Dir, slices.Concat(row.TestGoFiles, row.XTestGoFiles)); err != nil {
		return nil, err
	}
	if err := s.typeCheck(row.ImportPath, from); err != nil {
		return nil, fmt.Errorf("%s: %w", row.ImportPath, err)
	}
	// Files for other systems are parsed, but cannot be type-checked here.
	others, err := s.parseFiles(top, row.Dir, row.IgnoredGoFiles)
	s.Files = append(s.Files, others...)
	return s, err
}

// parseFiles parses files of a folder with their comments. It names them relative to the top of the tree.
func (s *goPackage) parseFiles(top, folder string, names []string) ([]*parsedFile, error) {
	var files []*parsedFile
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
		files = append(files, &parsedFile{Name: filepath.ToSlash(relative), Text: text, AST: parsed})
	}
	return files, nil
}

// typeCheck runs the type checker over the shipped files.
func (s *goPackage) typeCheck(path string, from types.Importer) error {
	s.Info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Defs:  map[*ast.Ident]types.Object{},
		Uses:  map[*ast.Ident]types.Object{},
	}
	var files []*ast.File
	for _, f := range s.Files {
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

// inFolders reports whether a package is one of the folders, or below one. A "*" in a folder matches one path element.
func (s *goPackage) inFolders(folders ...string) bool {
	return pathMatches(s.Path, folders...)
}

// pathMatches reports the same for a path.
func pathMatches(path string, folders ...string) bool {
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

// isDeployed reports whether a package is part of what is deployed.
func (s *goPackage) isDeployed() bool { return s.inFolders("shared", "functions") }

// isBootstrap reports whether a package is a deployed program.
func (s *goPackage) isBootstrap() bool { return pathMatches(s.Path, "functions/*/bootstrap") }

// violation is one place that breaks a rule.
type violation struct {
	Position token.Pos
	Message  string
}

// packageRule returns the offences of one package.
type packageRule func(*goPackage) []violation

// enforce runs a rule over the packages that where selects, and fails the test with the place of each offence. It also
// fails when where selects no package.
func enforce(t *testing.T, check packageRule, where func(*goPackage) bool) {
	t.Helper()
	seen := 0
	for _, s := range loadTree(t).Packages {
		if !where(s) {
			continue
		}
		seen++
		for _, o := range check(s) {
			t.Errorf("%s: %s", s.Fset.Position(o.Position), o.Message)
		}
	}
	if seen == 0 {
		t.Error("the rule checked no package")
	}
}

// inspect visits each syntax node of the files.
func inspect(files []*parsedFile, visit func(ast.Node)) {
	for _, f := range files {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if n != nil {
				visit(n)
			}
			return true
		})
	}
}
