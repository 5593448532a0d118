package archtest

import (
	"go/parser"
	"go/token"
	"strings"
	"sync"
	"testing"
)

// TestRulesFindViolations proves each rule on small programs: those that break it, and those that look as if they did.
func TestRulesFindViolations(t *testing.T) {
	cases := []struct {
		name  string
		check packageRule
		code  string
		want  string // part of the one offence; "" for none
	}{
		{"float type", findFloats, `var x = map[string]float64{}`, "floating-point"},
		{"float literal", findFloats, `import "time"; const x = time.Duration(1.5 * 1e9)`, "floating-point"},
		{"float conversion", findFloats, `func f(n int) int { return int(float32(n)) }`, "floating-point"},
		{"float parser", findFloats, `import "strconv"; var _, _ = strconv.ParseFloat("1", 64)`, "floating-point"},
		{"float method", findFloats, `import "time"; func f(d time.Duration) int { return int(d.Seconds()) }`, "floating-point"},
		{"float in a struct", findFloats, `type T struct { Amount []float64 }; func f() any { return T{} }`, "floating-point"},
		{"integers", findFloats, `import "time"; func f(d time.Duration) int64 { return d.Milliseconds() * 3 / 2 }`, ""},

		{"clock", environmentViolations, `import "time"; func f() time.Time { return time.Now() }`, "time.Now"},
		{"clock as a value", environmentViolations, `import "time"; var f = time.Now`, "time.Now"},
		{"clock renamed", environmentViolations, `import t "time"; func f() { t.Sleep(1) }`, "time.Sleep"},
		{"environment", environmentViolations, `import "os"; func f() string { return os.Getenv("A") }`, "os.Getenv"},
		{"randomness", environmentViolations, `import "crypto/rand"; var r = rand.Reader`, "crypto/rand.Reader"},
		{"default client", environmentViolations, `import "net/http"; var c = http.DefaultClient`, "net/http.DefaultClient"},
		{"print", environmentViolations, `import "fmt"; func f() { fmt.Println() }`, "fmt.Println"},
		{"built-in print", environmentViolations, `func f() { println() }`, "println"},
		{"a clock that was given", environmentViolations, `import "time"; func f(now func() time.Time, w interface{ Sleep() }) { now(); w.Sleep() }`, ""},

		{"assigned", findMutable, `var n = 1; func f() { n = 2 }`, "writes the package's variable n"},
		{"counted", findMutable, `var n = 1; func f() { n++ }`, "writes the package's variable n"},
		{"element written", findMutable, `var m = map[int]int{}; func f() { m[1] = 2 }`, "writes the package's variable m"},
		{"field written", findMutable, `var t = struct{ n int }{}; func f() { t.n += 2 }`, "writes the package's variable t"},
		{"address taken", findMutable, `var n = 1; func f() *int { return &n }`, "writes the package's variable n"},
		{"element deleted", findMutable, `var m = map[int]int{}; func f() { delete(m, 1) }`, "writes the package's variable m"},
		{"no value", findMutable, `var n int`, "has no value"},
		{"mutex", findMutable, `import "sync"; var m = sync.Mutex{}`, "sync.Mutex"},
		{"channel", findMutable, `var c = make(chan int)`, "channel"},
		{"exported table", findMutable, `var Table = []string{"a"}`, "can be changed by whoever imports it"},
		{"local of the same name", findMutable, `var n = 1; func f() { n := 1; n++; _ = n }`, ""},
		{"table, error and assertion", findMutable, `import "errors"; var t = []int{1}; var Err = errors.New("x"); var _ error = nil; func f() int { return t[0] }`, ""},

		{"init", findInits, `func init() {}`, "init"},
		{"a method named init", findInits, `type T struct{}; func (T) init() {}`, ""},

		{"undocumented function", findUndocumented, `func F() {}`, "F has no doc comment"},
		{"undocumented type", findUndocumented, `type T struct{}`, "T has no doc comment"},
		{"undocumented method", findUndocumented, "type t int\n\nfunc (t) M() {}", "M has no doc comment"},
		{"undocumented constant", findUndocumented, "const C = 1", "C has no doc comment"},
		{"comment of something else", findUndocumented, "// Does things.\nfunc F() {}", "does not begin with its name"},
		{"comment without a sentence", findUndocumented, "// F this\nfunc F() {}", "is no sentence"},
		{"constants with a group's comment", findUndocumented, "// The numbers.\nconst (\n\tA = 1\n\tB = 2\n)", ""},
		{"documented", findUndocumented, "// A T is a thing.\ntype T struct{}\n\n// M does it.\nfunc (T) M() {}", ""},

		{"long function", findOversized, "func f() {" + strings.Repeat("\n", maxFunctionLines+2) + "}", "more than 70"},
		{"long file", findOversized, strings.Repeat("\n", maxFileLines+1), "more than 400"},
		{"long enough", findOversized, "func f() {" + strings.Repeat("\n", maxFunctionLines) + "}", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			violations := c.check(parseProgram(t, c.code))
			if c.want == "" {
				if len(violations) > 0 {
					t.Errorf("found %q, want nothing", violations[0].Message)
				}
				return
			}
			if len(violations) == 0 || !strings.Contains(violations[0].Message, c.want) {
				t.Errorf("found %v, want %q", violations, c.want)
			}
		})
	}
}

// environmentViolations is the rule of TestNoAmbientEnvironment without its exceptions.
func environmentViolations(s *goPackage) []violation { return findUses(s, environment) }

// standardLibraryExports is the export data of the standard packages that the small programs import.
var standardLibraryExports = sync.OnceValues(func() (map[string]string, error) {
	rows, err := listPackages(".", "-export", "-deps", "crypto/rand", "errors", "fmt", "net/http", "os", "strconv", "sync", "time")
	exports := map[string]string{}
	for _, row := range rows {
		exports[row.ImportPath] = row.Export
	}
	return exports, err
})

// parseProgram makes a source of a few lines.
func parseProgram(t *testing.T, code string) *goPackage {
	t.Helper()
	exports, err := standardLibraryExports()
	if err != nil {
		t.Fatal(err)
	}
	s := &goPackage{Path: "shared/proof", Fset: token.NewFileSet()}
	text := "// Package proof is one.\npackage proof\n" + code
	parsed, err := parser.ParseFile(s.Fset, "proof.go", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	s.Files = []*parsedFile{{Name: "proof.go", Text: []byte(text), AST: parsed}}
	if err := s.typeCheck(modulePath+"/shared/proof", exportImporter(s.Fset, exports)); err != nil {
		t.Fatal(err)
	}
	return s
}
