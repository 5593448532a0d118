package imports

import (
	"go/parser"
	"go/token"
	"strings"
	"sync"
	"testing"
)

// TestRulesFindViolations proves each rule on small programs: some break it, some only look alike.
func TestRulesFindViolations(t *testing.T) {
	cases := []struct {
		name  string
		check packageRule
		code  string
		want  string // part of the offence; "" for none
	}{
		{"float type", findFloats, `var x = map[string]float64{}`, "floating"},
		{"float literal", findFloats, `import "time"; const x = time.Duration(1.5 * 1e9)`, "floating"},
		{"float conversion", findFloats, `func f(n int) int { return int(float32(n)) }`, "floating"},
		{"float parser", findFloats, `import "strconv"; var _, _ = strconv.ParseFloat("1", 64)`, "floating"},
		{"float method", findFloats, `import "time"; func f(d time.Duration) any { return d.Hours() }`, "floating"},
		{"float in a struct", findFloats, `type T struct { A []float64 }; func f() any { return T{} }`, "floating"},
		{"integers", findFloats, `import "time"; func f(d time.Duration) int64 { return d.Milliseconds() / 2 }`, ""},

		{"assigned", findMutable, `var n = 1; func f() { n = 2 }`, "writes the package's variable n"},
		{"counted", findMutable, `var n = 1; func f() { n++ }`, "writes the package's variable n"},
		{"element written", findMutable, `var m = map[int]int{}; func f() { m[1] = 2 }`, "the package's variable m"},
		{"field written", findMutable, `var t = struct{ n int }{}; func f() { t.n++ }`, "the package's variable t"},
		{"address taken", findMutable, `var n = 1; func f() *int { return &n }`, "writes the package's variable n"},
		{"element deleted", findMutable, `var m = map[int]int{}; func f() { delete(m, 1) }`, "package's variable m"},
		{"no value", findMutable, `var n int`, "has no value"},
		{"mutex", findMutable, `import "sync"; var m = sync.Mutex{}`, "sync.Mutex"},
		{"channel", findMutable, `var c = make(chan int)`, "channel"},
		{"exported table", findMutable, `var Table = []string{"a"}`, "importers can change Table"},
		{"local of the same name", findMutable, `var n = 1; func f() { n := 1; n++; _ = n }`, ""},
		{"table", findMutable, `var t = []int{1}; func f() int { return t[0] }`, ""},
		{"error and assertion", findMutable, `import "errors"; var Err = errors.New("x"); var _ error = nil`, ""},

		{"undocumented function", findUndocumented, `func F() {}`, "F has no doc comment"},
		{"undocumented type", findUndocumented, `type T struct{}`, "T has no doc comment"},
		{"undocumented method", findUndocumented, "type t int\n\nfunc (t) M() {}", "M has no doc comment"},
		{"undocumented constant", findUndocumented, "const C = 1", "C has no doc comment"},
		{"comment of something else", findUndocumented, "// Does things.\nfunc F() {}", "does not begin with its name"},
		{"comment without a sentence", findUndocumented, "// F this\nfunc F() {}", "is not a sentence"},
		{"constants with a group's comment", findUndocumented, "// The numbers.\nconst (\n\tA = 1\n\tB = 2\n)", ""},
		{"documented", findUndocumented, "// A T is a thing.\ntype T struct{}\n\n// M does it.\nfunc (T) M() {}", ""},
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

// standardLibraryExports returns the export data of the standard packages that the small programs import.
var standardLibraryExports = sync.OnceValues(func() (map[string]string, error) {
	rows, err := listPackages(".", nil, "-export", "-deps", "errors", "strconv", "sync", "time")
	exports := map[string]string{}
	for _, row := range rows {
		exports[row.ImportPath] = row.Export
	}
	return exports, err
})

// parseProgram makes a package of a few lines.
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
