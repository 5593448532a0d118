package archtest

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"testing"
)

// surroundings are what a process has around it. In shared and functions they come in as values, so that a test can
// hold the clock; only bootstraps reach for the real ones.
var surroundings = map[string][]string{
	"time":        {"Now", "Since", "Until", "Sleep", "Tick", "NewTicker"},
	"os":          {"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Exit", "Args", "Stdin", "Stdout", "Stderr"},
	"crypto/rand": {"*"},
	"math/rand":   {"*"}, "math/rand/v2": {"*"},
	"net/http": {"DefaultClient", "DefaultTransport", "DefaultServeMux", "Get", "Head", "Post", "PostForm"},
	"log":      {"*"},
	"log/slog": {"Default", "SetDefault", "Debug", "Info", "Warn", "Error"},
	"fmt":      {"Print", "Println", "Printf", "Scan", "Scanln", "Scanf"},
}

// exception is one use that is allowed, with its reason.
type exception struct{ Package, Name, Why string }

// excused are the exceptions. A row that nothing needs is an offence too.
var excused = []exception{
	{"shared/assembly", "time.Now", "gives every bootstrap its clock"},
	{"shared/assembly", "os.Getenv", "gives every bootstrap its environment"},
	{"shared/assembly", "os.Stdout", "gives every bootstrap its log"},
	{"shared/assembly", "crypto/rand.Reader", "gives every bootstrap its randomness"},
	{"shared/assembly", "log.Fatal", "ends a process that cannot start"},
}

// TestSurroundings finds where shared code and functions reach for clock, randomness, environment or output themselves.
func TestSurroundings(t *testing.T) {
	used := map[string]bool{}
	keep(t, func(s *source) []offence {
		var left []offence
		for _, o := range reached(s, surroundings) {
			if i := slices.IndexFunc(excused, func(row exception) bool {
				return row.Package == s.Path && row.Name == o.Say
			}); i >= 0 {
				used[excused[i].Package+excused[i].Name] = true
				continue
			}
			left = append(left, offence{o.At, o.Say + " comes in as a value"})
		}
		return left
	}, func(s *source) bool { return s.ships() && !s.bootstrap() })
	for _, row := range excused {
		if !used[row.Package+row.Name] {
			t.Errorf("nothing needs the exception of %s for %s", row.Package, row.Name)
		}
	}
}

// TestNoPrint keeps fmt.Print and its like out of every program: output goes to a writer that was given.
func TestNoPrint(t *testing.T) {
	keep(t, func(s *source) []offence {
		return reached(s, map[string][]string{"fmt": surroundings["fmt"]})
	}, func(*source) bool { return true })
}

// reached finds the uses of names of other packages, and of the built-in print.
func reached(s *source, forbidden map[string][]string) []offence {
	var found []offence
	each(s.Shipped, func(n ast.Node) {
		name, ok := n.(*ast.Ident)
		if !ok {
			return
		}
		object := s.Info.Uses[name]
		if built, ok := object.(*types.Builtin); ok && (built.Name() == "print" || built.Name() == "println") {
			found = append(found, offence{name.Pos(), built.Name()})
			return
		}
		if object == nil || object.Pkg() == nil || object.Parent() != object.Pkg().Scope() {
			return // built-in, or a field or method
		}
		names := forbidden[object.Pkg().Path()]
		if slices.Contains(names, object.Name()) || slices.Contains(names, "*") {
			found = append(found, offence{name.Pos(), fmt.Sprintf("%s.%s", object.Pkg().Path(), object.Name())})
		}
	})
	return found
}
