package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRead compares the paragraphs of one file of each kind: the lines that a paragraph comes from, and its text.
func TestRead(t *testing.T) {
	for name, want := range map[string][]string{
		"page.md": {"1 # A heading of a page",
			"3,4 The first line of a paragraph and the second, with `x` and decision `x`.",
			"6 Cell one", "6 Cell `x` two", "7 ---", "7 ---", "8,9 - An item of a list that continues.", "16 `x`"},
		"template.yaml": {"1,2 A comment of two lines.", "6 behind a value", "4,5 A folded text of two lines.",
			"7 In braces."},
		"script.sh":   {"2 A comment.", "3 A text to print"},
		"story.txtar": {"1 A comment of a story."},
		"code.go": {"1 Package code is documented.", "13 a reason of three words", "10 The name of it.",
			"14,15 a long text: %w in two parts"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, paragraph := range readTestdata(t, name).paragraphs {
				var lines []string
				for _, start := range paragraph.starts {
					lines = append(lines, fmt.Sprint(start.line))
				}
				got = append(got, strings.Join(lines, ",")+" "+paragraph.text)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// readTestdata reads a file of testdata; a Go file is stored as text, so that no tool takes it for code of the tree.
func readTestdata(t *testing.T, name string) *page {
	t.Helper()
	file := filepath.Join("testdata", name)
	if filepath.Ext(name) == ".go" {
		file += ".txt"
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := read(name, string(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSource converts a column of a joined paragraph to the line that it comes from.
func TestSource(t *testing.T) {
	p := &page{}
	p.add(7, "first line")
	p.add(8, "second line")
	for column, want := range map[int]int{1: 7, 10: 7, 12: 8, 20: 8} {
		if got := p.source(1, column); got != want {
			t.Errorf("column %d is of line %d, want %d", column, got, want)
		}
	}
}

// TestNames declares every word of the table by itself and inside a longer name, and names that only resemble one.
func TestNames(t *testing.T) {
	rules, err := readNames("names.txt")
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]string{"": "var %s int", "func": "func %s() {}", "type": "type %s int"}
	for _, rule := range rules {
		folder := append(rule.under, "shared/")[0]
		for _, word := range rule.words {
			names := []string{word, strings.ToUpper(word[:1]) + word[1:]}
			if !rule.whole {
				names = append(names, word+"Status", "last"+names[1])
			}
			for _, name := range names {
				code := fmt.Sprintf(forms[rule.kind], name)
				if found := namesIn(t, rules, folder+"x.go", code); len(found) == 0 {
					t.Errorf("%s is not found", name)
				}
			}
		}
	}
	for _, clean := range []string{"var handler, threshold, display, returns, dryRun, placeholder int",
		"func live() {}", "type fast int", "var word, note int"} {
		for _, f := range namesIn(t, rules, "shared/x.go", clean) {
			t.Errorf("%s: found %s", clean, f.message)
		}
	}
}

// TestDeclarations finds a name in each place where Go code can declare one.
func TestDeclarations(t *testing.T) {
	rules := []nameRule{{words: []string{"banned"}}}
	for _, code := range []string{
		"const banned = 1",
		"type t struct{ banned int }",
		"type t interface{ banned() }",
		"type t[banned any] int",
		"func f(banned int) {}",
		"func f() (banned int) { return }",
		"func (banned t) f() {}",
		"func (t) banned() {}",
		"func f() { banned := 1; _ = banned }",
		"func f() { for banned := range 3 {} }",
		"func f() { banned: for { break banned } }",
		"import banned \"fmt\"",
	} {
		if found := namesIn(t, rules, "x.go", code); len(found) != 1 {
			t.Errorf("%s: found %d names, want 1", code, len(found))
		}
	}
}

// namesIn checks the names of a Go file with this code.
func namesIn(t *testing.T, rules []nameRule, file, code string) []finding {
	t.Helper()
	p, err := readGo(file, "package p\n"+code)
	if err != nil {
		t.Fatal(err)
	}
	return checkNames(rules, p)
}

// TestEveryRuleIsPlanted finds rows of the styles without an offence in planted.txt. Each run of the program then
// proves that vale finds the offences, and nothing in their counterparts.
func TestEveryRuleIsPlanted(t *testing.T) {
	rows, err := readPlanted("planted.txt")
	if err != nil {
		t.Fatal(err)
	}
	styles, err := filepath.Glob("styles/Prose/*.yml")
	if err != nil || len(styles) == 0 {
		t.Fatalf("no styles: %v", err)
	}
	for _, style := range styles {
		text, err := os.ReadFile(style)
		if err != nil {
			t.Fatal(err)
		}
		rule := strings.ToLower(strings.TrimSuffix(filepath.Base(style), ".yml"))
		offences := slices.DeleteFunc(slices.Clone(rows), func(row plantedRow) bool { return row.rule != rule })
		for _, swap := range regexp.MustCompile(`(?m)^  '.*': (.+)$`).FindAllStringSubmatch(string(text), -1) {
			plantedFor := func(row plantedRow) bool { return strings.Contains("use "+swap[1], row.message) }
			if !slices.ContainsFunc(offences, plantedFor) {
				t.Errorf("%s: no offence of %q is planted", style, swap[1])
			}
		}
		if expressions := strings.Count(string(text), "\n  - "); len(offences) < max(expressions, 1) {
			t.Errorf("%s: %d expressions, but %d planted offences", style, expressions, len(offences))
		}
	}
}

// TestPlanted reports a missing offence, and a finding in a clean counterpart.
func TestPlanted(t *testing.T) {
	rows := planted{{"term", "use fix", "A", "B"}}
	offence := finding{offencesPage, 0, "term", "'a': use fix"}
	other := finding{"docs/a.md", 3, "term", "'b': use notify"}
	if left, err := rows.remove([]finding{offence, other}); err != nil || !slices.Equal(left, []finding{other}) {
		t.Errorf("left %v, %v", left, err)
	}
	for name, found := range map[string][]finding{
		"nothing found":     nil,
		"another rule":      {{offencesPage, 0, "length", "use fix"}},
		"counterpart found": {offence, {cleanPage, 0, "term", "'c': use fix"}},
		"another message":   {{offencesPage, 0, "term", "'b': use notify"}},
	} {
		if _, err := rows.remove(found); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestExceptions allows what a row names, and reports a row that allows nothing.
func TestExceptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "exceptions.txt")
	text := "# path | rule | text | reason\ntestdata | term | first line | a reason\n" +
		"testdata/page.md | length | heading | unused\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	allowed, err := readExceptions(file)
	if err != nil {
		t.Fatal(err)
	}
	excepted := finding{"testdata/page.md", 3, "term", "x"}
	kept := []finding{
		{"testdata/page.md", 4, "term", "other line"},
		{"testdata/page.md", 3, "verb", "other rule"},
		{"page.md", 3, "term", "other file"},
	}
	if left := allowed.remove(append(kept, excepted)); !slices.Equal(left, kept) {
		t.Errorf("left %v, want %v", left, kept)
	}
	if unused := allowed.unused(); len(unused) != 1 || !strings.Contains(unused[0].message, "heading") {
		t.Errorf("unused: %v", unused)
	}
}
