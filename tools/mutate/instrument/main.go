// Command instrument puts many mutants into one program. The environment variable MUTANT selects the active one, so a
// test is built once for all mutants of a package.
//
// It reads mutants as JSON from standard input and changes the files in the current folder. It prints the ids of those
// that it cannot put in: constants, additions of texts, and calls of recover. The program appends the id of each mutant
// that it reaches to the file that MUTANTS_REACHED names.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const runtimeFolder = "shared/mutation"

// runtimeSource is the package that the changed files import.
const runtimeSource = `// Package mutation selects the active mutant.
package mutation

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

var (
	active  = number(os.Getenv("MUTANT"))
	record  = os.Getenv("MUTANTS_REACHED")
	reached sync.Map
)

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// On reports whether a mutant is active.
func On(id int) bool {
	if record != "" {
		if _, known := reached.LoadOrStore(id, true); !known {
			file, err := os.OpenFile(record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				panic(err)
			}
			fmt.Fprintln(file, id)
			file.Close()
		}
	}
	return id == active
}

type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// Arithmetic applies one of two operators.
func Arithmetic[T integer](id int, before, after byte, x, y T) T {
	if On(id) {
		before = after
	}
	switch before {
	case '+':
		return x + y
	case '-':
		return x - y
	case '*':
		return x * y
	case '/':
		return x / y
	}
	return x % y
}

// Negate returns -x, or x if the mutant is active.
func Negate[T integer](id int, x T) T {
	if On(id) {
		return x
	}
	return -x
}
`

// mutant replaces the operator at a place.
type mutant struct {
	ID       int    `json:"id"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Operator string `json:"operator"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "instrument:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	var mutants []mutant
	if err := json.NewDecoder(in).Decode(&mutants); err != nil {
		return err
	}
	byFolder := map[string][]mutant{}
	for _, m := range mutants {
		byFolder[filepath.Dir(m.File)] = append(byFolder[filepath.Dir(m.File)], m)
	}
	folders := slices.Sorted(maps.Keys(byFolder))
	exports, err := listExports(folders)
	if err != nil {
		return err
	}
	fixed := []int{}
	for _, folder := range folders {
		left, err := instrumentFolder(folder, byFolder[folder], exports)
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		fixed = append(fixed, left...)
	}
	if err := os.MkdirAll(runtimeFolder, 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(runtimeFolder+"/mutation.go", []byte(runtimeSource), 0o600); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(fixed)
}

// listExports returns the export data file of each dependency, by import path.
func listExports(folders []string) (map[string]string, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, folder := range folders {
		args = append(args, "./"+folder)
	}
	command := exec.Command("go", args...)
	command.Stderr = os.Stderr
	listed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list dependencies: %w", err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(listed)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[path] = file
	}
	return exports, nil
}

// source is a file with the mutants of each of its expressions and statements.
type source struct {
	path     string
	text     []byte
	set      *token.FileSet
	info     *types.Info
	byPlace  map[[2]int][]mutant
	mutants  map[ast.Node][]mutant
	mutables []ast.Node // outer ones before the inner ones
}

// instrumentFolder changes the files of one package, and returns the ids that it cannot put in.
func instrumentFolder(folder string, mutants []mutant, exports map[string]string) (fixed []int, err error) {
	paths, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	var files []*ast.File
	var sources []*source
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path) //nolint:gosec // a file of this repository
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
		sources = append(sources, &source{
			path: path, text: text, set: set, info: info,
			byPlace: map[[2]int][]mutant{}, mutants: map[ast.Node][]mutant{},
		})
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) } //nolint:gosec // from go list
	config := types.Config{Importer: importer.ForCompiler(set, "gc", lookup)}
	if _, err := config.Check(folder, set, files, info); err != nil {
		return nil, err
	}
	for i, s := range sources {
		left, err := s.instrument(files[i], mutants)
		if err != nil {
			return nil, err
		}
		fixed = append(fixed, left...)
	}
	return fixed, nil
}

// instrument changes one file.
func (s *source) instrument(file *ast.File, mutants []mutant) (fixed []int, err error) {
	waiting := map[int]bool{}
	for _, m := range mutants {
		if m.File == s.path {
			s.byPlace[[2]int{m.Line, m.Column}] = append(s.byPlace[[2]int{m.Line, m.Column}], m)
			waiting[m.ID] = true
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if at, isSwitchable := s.operatorOf(node); isSwitchable {
			place := s.set.Position(at)
			if found := s.byPlace[[2]int{place.Line, place.Column}]; len(found) > 0 {
				s.mutants[node] = found
				s.mutables = append(s.mutables, node)
				for _, m := range found {
					delete(waiting, m.ID)
				}
			}
		}
		return true
	})
	if len(s.mutables) > 0 {
		name := s.set.Position(file.Name.End()).Offset
		text := string(s.text[:name]) + "; import \"mobilegateway/" + runtimeFolder + "\"" +
			s.render(name, len(s.text))
		if err := os.WriteFile(s.path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(waiting)), nil
}

// operatorOf returns the place of a node's operator, and whether the operator can be chosen while the program runs.
func (s *source) operatorOf(node ast.Node) (at token.Pos, isSwitchable bool) {
	integer := func(e ast.Expr) bool {
		basic, isBasic := s.info.Types[e].Type.Underlying().(*types.Basic)
		return isBasic && basic.Info()&types.IsInteger != 0 && s.info.Types[e].Value == nil
	}
	switch n := node.(type) {
	case *ast.BinaryExpr:
		if slices.Contains([]token.Token{token.ADD, token.SUB, token.MUL, token.QUO, token.REM}, n.Op) {
			return n.OpPos, integer(n)
		}
		return n.OpPos, s.info.Types[n].Value == nil && !callsRecover(n)
	case *ast.UnaryExpr:
		return n.OpPos, n.Op == token.SUB && integer(n)
	case *ast.IncDecStmt:
		return n.TokPos, true
	}
	return token.NoPos, false
}

// callsRecover reports whether an expression calls recover, which has no effect in a function that choice adds.
func callsRecover(e ast.Expr) (found bool) {
	ast.Inspect(e, func(node ast.Node) bool {
		name, isName := node.(*ast.Ident)
		found = found || isName && name.Name == "recover"
		return true
	})
	return found
}

// render returns a part of the file, with a choice in each place that has mutants.
func (s *source) render(from, to int) string {
	var out bytes.Buffer
	for _, node := range s.mutables {
		begin, end := s.offset(node.Pos()), s.offset(node.End())
		if begin < from || end > to {
			continue
		}
		out.Write(s.text[from:begin])
		out.WriteString(s.choice(node))
		from = end // an inner one begins before this
	}
	out.Write(s.text[from:to])
	return out.String()
}

func (s *source) offset(at token.Pos) int { return s.set.Position(at).Offset }

// choice returns the text of a node whose operator is chosen by the active mutant.
func (s *source) choice(node ast.Node) string {
	found := s.mutants[node]
	part := func(e ast.Expr) string { return s.render(s.offset(e.Pos()), s.offset(e.End())) }
	switch n := node.(type) {
	case *ast.IncDecStmt:
		x := part(n.X)
		return fmt.Sprintf("func() { if mutation.On(%d) { %s%s } else { %s%s } }()",
			found[0].ID, x, found[0].Operator, x, n.Tok)
	case *ast.UnaryExpr:
		return fmt.Sprintf("mutation.Negate(%d, %s)", found[0].ID, part(n.X))
	case *ast.BinaryExpr:
		x, y := part(n.X), part(n.Y)
		if slices.Contains([]string{"+", "-", "*", "/"}, found[0].Operator) {
			return fmt.Sprintf("mutation.Arithmetic(%d, '%s', '%s', %s, %s)", found[0].ID, n.Op,
				found[0].Operator, x, y)
		}
		text := "(func() bool { "
		for _, m := range found {
			text += fmt.Sprintf("if mutation.On(%d) { return %s %s %s }; ", m.ID, x, m.Operator, y)
		}
		return text + fmt.Sprintf("return %s %s %s }())", x, n.Op, y)
	}
	panic("a node without an operator")
}
