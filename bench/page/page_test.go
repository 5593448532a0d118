package page_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/bench/page"
)

func TestSection(t *testing.T) {
	marks := page.NewMarks("costs")
	cases := []struct {
		name, text, section string
		valid               bool
	}{
		{"a section", "a\n<!-- costs: begin -->\n\nb\n\n<!-- costs: end -->\nc\n", "b", true},
		{"an empty section", "<!-- costs: begin -->\n<!-- costs: end -->\n", "", true},
		{"no begin", "a\n<!-- costs: end -->\n", "", false},
		{"no end", "a\n<!-- costs: begin -->\nb\n", "", false},
		{"another name", "<!-- cost: begin -->\nb\n<!-- cost: end -->\n", "", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			section, err := marks.Section(c.text)
			if section != c.section || (err == nil) != c.valid {
				t.Errorf("section %q, %v; want %q, valid %t", section, err, c.section, c.valid)
			}
		})
	}
}

func TestReplace(t *testing.T) {
	marks, path := page.NewMarks("costs"), filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("head\n" + marks.Begin + "old\n" + marks.End + "tail\n")
	for range 2 { // writing twice changes nothing more
		if err := marks.Replace(path, "new\n"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "head\n" + marks.Begin + "\nnew\n\n" + marks.End + "tail\n"
	if difference := cmp.Diff(want, string(got)); difference != "" {
		t.Errorf("the page differs (-want +got):\n%s", difference)
	}
	write("no marks")
	if err := marks.Replace(path, "new"); err == nil || !strings.Contains(err.Error(), "marks") {
		t.Errorf("without marks the error is %v, want one about marks", err)
	}
}
