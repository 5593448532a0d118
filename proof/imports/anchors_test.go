package imports

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// decisionsPages are the pages with the anchor of each decision: what merchants and operators see, and what is inside.
var decisionsPages = []string{"docs/unspecified.md", "docs/internals.md"}

// findAnchors returns the anchors that a text names: the word, then one or more quoted anchors, over several comment
// lines.
func findAnchors(text string) []string {
	text = lineBreaks.ReplaceAllString(text, " ")
	var found []string
	for _, list := range anchorMention.FindAllString(text, -1) {
		for _, quoted := range quotedText.FindAllStringSubmatch(list, -1) {
			found = append(found, quoted[1])
		}
	}
	return found
}

var (
	// lineBreaks matches a line end with the comment mark of the next line.
	lineBreaks = regexp.MustCompile(`\s*\n[ \t]*(//|#)?[ \t]*`)
	// anchorMention matches one place that names anchors.
	anchorMention = regexp.MustCompile(`decisions? \\?"[a-z0-9-]+\\?"((,| and|, and| or) \\?"[a-z0-9-]+\\?")*`)
	// quotedText matches one anchor of a mention.
	quotedText = regexp.MustCompile(`"([a-z0-9-]+)\\?"`)
	// heading matches the heading of a decision.
	heading = regexp.MustCompile(`(?m)^### ([a-z0-9-]+)$`)
)

// TestAnchors compares the anchors of the decisions with those that other files name: each named anchor exists once,
// and code, a test or the template names each existing anchor.
func TestAnchors(t *testing.T) {
	headings := map[string]int{}
	for _, page := range decisionsPages {
		for _, found := range heading.FindAllStringSubmatch(readTreeFile(t, page), -1) {
			headings[found[1]]++
		}
	}
	used := map[string]bool{}
	for _, f := range trackedFiles(t) {
		if slices.Contains(decisionsPages, f.Name) || pathMatches(f.Name, "proof/imports") {
			continue
		}
		for _, anchor := range findAnchors(string(f.Text)) {
			used[anchor] = used[anchor] || !strings.HasSuffix(f.Name, ".md")
			if headings[anchor] == 0 {
				t.Errorf("%s names the decision %q, which %v do not have", f.Name, anchor, decisionsPages)
			}
		}
	}
	for anchor, times := range headings {
		if times > 1 {
			t.Errorf("%v have the anchor %q %d times", decisionsPages, anchor, times)
		}
		if !used[anchor] {
			t.Errorf("no code, test or template names the decision %q of %v", anchor, decisionsPages)
		}
	}
	if len(headings) == 0 {
		t.Errorf("%v have no anchor", decisionsPages)
	}
}

// TestFindAnchors proves which anchors a text names.
func TestFindAnchors(t *testing.T) {
	const forbidden = "decision" // apart, so that this file names no anchor
	cases := []struct {
		name, text string
		want       []string
	}{
		{"one", forbidden + ` "a-b".`, []string{"a-b"}},
		{"two", forbidden + `s "a-b" and "c"`, []string{"a-b", "c"}},
		{"three", forbidden + `s "a", "b-1" and "c"`, []string{"a", "b-1", "c"}},
		{"broken by a comment's line", "(" + forbidden + "\n\t// \"a-b\")", []string{"a-b"}},
		{"broken in YAML", forbidden + "\n  # \"a\"", []string{"a"}},
		{"in a string", forbidden + ` \"a\"`, []string{"a"}},
		{"none", "a " + forbidden + ` is "taken"` + "\n", nil},
	}
	for _, c := range cases {
		if got := findAnchors(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
