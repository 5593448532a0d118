package archtest

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"testing"
)

// environment are what a process has around it. In shared and functions they come in as values, so that a test can
// hold the clock; only bootstraps reach for the real ones.
var environment = map[string][]string{
	"time":        {"Now", "Since", "Until", "Sleep", "Tick", "NewTicker"},
	"os":          {"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Exit", "Args", "Stdin", "Stdout", "Stderr"},
	"crypto/rand": {"*"},
	"math/rand":   {"*"}, "math/rand/v2": {"*"},
	"net/http": {"DefaultClient", "DefaultTransport", "DefaultServeMux", "Get", "Head", "Post", "PostForm"},
	"log":      {"*"},
	"log/slog": {"Default", "SetDefault", "Debug", "Info", "Warn", "Error"},
	"fmt":      {"Print", "Println", "Printf", "Scan", "Scanln", "Scanf"},
}

// allowedUse is one use that is allowed, with its reason.
type allowedUse struct{ Package, Name, Reason string }

// allowedUses are the exceptions. A row that nothing needs is an offence too.
var allowedUses = []allowedUse{
	{"shared/wiring", "time.Now", "gives every bootstrap its clock"},
	{"shared/wiring", "os.Getenv", "gives every bootstrap its environment"},
	{"shared/wiring", "os.Stdout", "gives every bootstrap its log"},
	{"shared/wiring", "crypto/rand.Reader", "gives every bootstrap its randomness"},
	{"shared/wiring", "log.Fatal", "ends a process that cannot start"},
}

// TestNoAmbientEnvironment finds where shared code and functions reach for clock, randomness, environment or output themselves.
func TestNoAmbientEnvironment(t *testing.T) {
	used := map[string]bool{}
	enforce(t, func(s *goPackage) []violation {
		var left []violation
		for _, o := range findUses(s, environment) {
			if i := slices.IndexFunc(allowedUses, func(row allowedUse) bool {
				return row.Package == s.Path && row.Name == o.Message
			}); i >= 0 {
				used[allowedUses[i].Package+allowedUses[i].Name] = true
				continue
			}
			left = append(left, violation{o.Position, o.Message + " comes in as a value"})
		}
		return left
	}, func(s *goPackage) bool { return s.isDeployed() && !s.isBootstrap() })
	for _, row := range allowedUses {
		if !used[row.Package+row.Name] {
			t.Errorf("nothing needs the exception of %s for %s", row.Package, row.Name)
		}
	}
}

// TestNoPrint keeps fmt.Print and its like out of every program: output goes to a writer that was given.
func TestNoPrint(t *testing.T) {
	enforce(t, func(s *goPackage) []violation {
		return findUses(s, map[string][]string{"fmt": environment["fmt"]})
	}, func(*goPackage) bool { return true })
}

// findUses finds the uses of names of other packages, and of the built-in print.
func findUses(s *goPackage, forbidden map[string][]string) []violation {
	var found []violation
	inspectFiles(s.Files, func(n ast.Node) {
		name, ok := n.(*ast.Ident)
		if !ok {
			return
		}
		object := s.Info.Uses[name]
		if built, ok := object.(*types.Builtin); ok && (built.Name() == "print" || built.Name() == "println") {
			found = append(found, violation{name.Pos(), built.Name()})
			return
		}
		if object == nil || object.Pkg() == nil || object.Parent() != object.Pkg().Scope() {
			return // built-in, or a field or method
		}
		names := forbidden[object.Pkg().Path()]
		if slices.Contains(names, object.Name()) || slices.Contains(names, "*") {
			found = append(found, violation{name.Pos(), fmt.Sprintf("%s.%s", object.Pkg().Path(), object.Name())})
		}
	})
	return found
}
