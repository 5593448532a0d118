package archtest

import (
	"go/parser"
	"go/token"
	"strings"
	"sync"
	"testing"
)

// TestRulesFindOffences proves each rule on small programs: those that break it, and those that look as if they did.
func TestRulesFindOffences(t *testing.T) {
	cases := []struct {
		name  string
		check rule
		code  string
		want  string // part of the one offence; "" for none
	}{
		{"float type", floats, `var x = map[string]float64{}`, "floating-point"},
		{"float literal", floats, `import "time"; const x = time.Duration(1.5 * 1e9)`, "floating-point"},
		{"float conversion", floats, `func f(n int) int { return int(float32(n)) }`, "floating-point"},
		{"float parser", floats, `import "strconv"; var _, _ = strconv.ParseFloat("1", 64)`, "floating-point"},
		{"float method", floats, `import "time"; func f(d time.Duration) int { return int(d.Seconds()) }`, "floating-point"},
		{"float in a struct", floats, `type T struct { Amount []float64 }; func f() any { return T{} }`, "floating-point"},
		{"integers", floats, `import "time"; func f(d time.Duration) int64 { return d.Milliseconds() * 3 / 2 }`, ""},

		{"clock", surrounded, `import "time"; func f() time.Time { return time.Now() }`, "time.Now"},
		{"clock as a value", surrounded, `import "time"; var f = time.Now`, "time.Now"},
		{"clock renamed", surrounded, `import t "time"; func f() { t.Sleep(1) }`, "time.Sleep"},
		{"environment", surrounded, `import "os"; func f() string { return os.Getenv("A") }`, "os.Getenv"},
		{"randomness", surrounded, `import "crypto/rand"; var r = rand.Reader`, "crypto/rand.Reader"},
		{"default client", surrounded, `import "net/http"; var c = http.DefaultClient`, "net/http.DefaultClient"},
		{"print", surrounded, `import "fmt"; func f() { fmt.Println() }`, "fmt.Println"},
		{"built-in print", surrounded, `func f() { println() }`, "println"},
		{"a clock that was given", surrounded, `import "time"; func f(now func() time.Time, w interface{ Sleep() }) { now(); w.Sleep() }`, ""},

		{"assigned", mutable, `var n = 1; func f() { n = 2 }`, "writes the package's variable n"},
		{"counted", mutable, `var n = 1; func f() { n++ }`, "writes the package's variable n"},
		{"element written", mutable, `var m = map[int]int{}; func f() { m[1] = 2 }`, "writes the package's variable m"},
		{"field written", mutable, `var t = struct{ n int }{}; func f() { t.n += 2 }`, "writes the package's variable t"},
		{"address taken", mutable, `var n = 1; func f() *int { return &n }`, "writes the package's variable n"},
		{"element deleted", mutable, `var m = map[int]int{}; func f() { delete(m, 1) }`, "writes the package's variable m"},
		{"no value", mutable, `var n int`, "has no value"},
		{"mutex", mutable, `import "sync"; var m = sync.Mutex{}`, "sync.Mutex"},
		{"channel", mutable, `var c = make(chan int)`, "channel"},
		{"exported table", mutable, `var Table = []string{"a"}`, "can be changed by whoever imports it"},
		{"local of the same name", mutable, `var n = 1; func f() { n := 1; n++; _ = n }`, ""},
		{"table, error and assertion", mutable, `import "errors"; var t = []int{1}; var Err = errors.New("x"); var _ error = nil; func f() int { return t[0] }`, ""},

		{"init", inits, `func init() {}`, "init"},
		{"a method named init", inits, `type T struct{}; func (T) init() {}`, ""},

		{"undocumented function", undocumented, `func F() {}`, "F has no doc comment"},
		{"undocumented type", undocumented, `type T struct{}`, "T has no doc comment"},
		{"undocumented method", undocumented, "type t int\n\nfunc (t) M() {}", "M has no doc comment"},
		{"undocumented constant", undocumented, "const C = 1", "C has no doc comment"},
		{"comment of something else", undocumented, "// Does things.\nfunc F() {}", "does not begin with its name"},
		{"comment without a sentence", undocumented, "// F this\nfunc F() {}", "is no sentence"},
		{"constants with a group's comment", undocumented, "// The numbers.\nconst (\n\tA = 1\n\tB = 2\n)", ""},
		{"documented", undocumented, "// A T is a thing.\ntype T struct{}\n\n// M does it.\nfunc (T) M() {}", ""},

		{"long function", long, "func f() {" + strings.Repeat("\n", maxFunctionLines+2) + "}", "more than 70"},
		{"long file", long, strings.Repeat("\n", maxFileLines+1), "more than 400"},
		{"long enough", long, "func f() {" + strings.Repeat("\n", maxFunctionLines) + "}", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			offences := c.check(program(t, c.code))
			if c.want == "" {
				if len(offences) > 0 {
					t.Errorf("found %q, want nothing", offences[0].Say)
				}
				return
			}
			if len(offences) == 0 || !strings.Contains(offences[0].Say, c.want) {
				t.Errorf("found %v, want %q", offences, c.want)
			}
		})
	}
}

// surrounded is the rule of TestSurroundings without its exceptions.
func surrounded(s *source) []offence { return reached(s, surroundings) }

// library is the export data of the standard packages that the small programs import.
var library = sync.OnceValues(func() (map[string]string, error) {
	rows, err := list(".", "-export", "-deps", "crypto/rand", "errors", "fmt", "net/http", "os", "strconv", "sync", "time")
	exports := map[string]string{}
	for _, row := range rows {
		exports[row.ImportPath] = row.Export
	}
	return exports, err
})

// program makes a source of a few lines.
func program(t *testing.T, code string) *source {
	t.Helper()
	exports, err := library()
	if err != nil {
		t.Fatal(err)
	}
	s := &source{Path: "shared/proof", Fset: token.NewFileSet()}
	text := "// Package proof is one.\npackage proof\n" + code
	parsed, err := parser.ParseFile(s.Fset, "proof.go", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	s.Shipped = []*file{{Name: "proof.go", Text: []byte(text), AST: parsed}}
	if err := s.check(module+"/shared/proof", exportImporter(s.Fset, exports)); err != nil {
		t.Fatal(err)
	}
	return s
}
