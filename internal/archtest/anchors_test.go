package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// decisions is the page where each decision has its anchor.
const decisions = "docs/unspecified.md"

// named finds the anchors that a text names: the word, then one or more quoted anchors. Comments may break in between.
func named(text string) []string {
	text = breaks.ReplaceAllString(text, " ")
	var found []string
	for _, list := range mention.FindAllString(text, -1) {
		for _, quoted := range quotation.FindAllStringSubmatch(list, -1) {
			found = append(found, quoted[1])
		}
	}
	return found
}

var (
	// breaks are line ends with the comment marks of the next line.
	breaks = regexp.MustCompile(`\s*\n[ \t]*(//|#)?[ \t]*`)
	// mention is one place that names anchors.
	mention = regexp.MustCompile(`decisions? \\?"[a-z0-9-]+\\?"((,| and|, and| or) \\?"[a-z0-9-]+\\?")*`)
	// quotation is one anchor of a mention.
	quotation = regexp.MustCompile(`"([a-z0-9-]+)\\?"`)
	// heading is an anchor's place.
	heading = regexp.MustCompile(`(?m)^### ([a-z0-9-]+)$`)
)

// TestAnchors walks both ways: every anchor that is named anywhere stands in docs/unspecified.md, and every anchor that
// stands there is named by code, by a test or by the template.
func TestAnchors(t *testing.T) {
	top := loaded(t).Top
	page, err := os.ReadFile(filepath.Join(top, decisions))
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]int{}
	for _, found := range heading.FindAllStringSubmatch(string(page), -1) {
		places[found[1]]++
	}
	used := map[string]bool{}
	for _, f := range tracked(t) {
		if f.Name == decisions || below(f.Name, "internal/archtest") {
			continue
		}
		for _, anchor := range named(string(f.Text)) {
			used[anchor] = used[anchor] || !strings.HasSuffix(f.Name, ".md")
			if places[anchor] == 0 {
				t.Errorf("%s names the decision %q, which %s does not have", f.Name, anchor, decisions)
			}
		}
	}
	for anchor, times := range places {
		if times > 1 {
			t.Errorf("%s has the anchor %q %d times", decisions, anchor, times)
		}
		if !used[anchor] {
			t.Errorf("no code, test or template names the decision %q of %s", anchor, decisions)
		}
	}
	if len(places) == 0 {
		t.Errorf("%s has no anchor", decisions)
	}
}

// TestNamed proves how mentions are read.
func TestNamed(t *testing.T) {
	const word = "decision" // apart, so that this file itself names none
	cases := []struct {
		name, text string
		want       []string
	}{
		{"one", word + ` "a-b".`, []string{"a-b"}},
		{"two", word + `s "a-b" and "c"`, []string{"a-b", "c"}},
		{"three", word + `s "a", "b-1" and "c"`, []string{"a", "b-1", "c"}},
		{"broken by a comment's line", "(" + word + "\n\t// \"a-b\")", []string{"a-b"}},
		{"broken in YAML", word + "\n  # \"a\"", []string{"a"}},
		{"in a string", word + ` \"a\"`, []string{"a"}},
		{"none", "a " + word + ` is "taken"` + "\n", nil},
	}
	for _, c := range cases {
		if got := named(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
