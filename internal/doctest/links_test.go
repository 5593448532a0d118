package doctest

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// languages are the tags that a block may have. A block without one shows as text of an unknown kind.
var languages = []string{"console", "diff", "go", "http", "java", "javascript", "json", "mermaid", "php", "python", "sh", "text", "yaml"}

// TestLinks follows every relative link, and its anchor where it leads to a page.
func TestLinks(t *testing.T) {
	for _, p := range allPages(t) {
		for _, l := range p.links {
			if strings.Contains(l.text, "://") || strings.HasPrefix(l.text, "mailto:") {
				continue
			}
			if reason := brokenLink(t, p, l.text); reason != "" {
				t.Errorf("%s:%d: %s: %s", p.name, l.line, l.text, reason)
			}
		}
	}
}

// brokenLink says what is wrong with a link of a page, "" for nothing.
func brokenLink(t *testing.T, from page, target string) string {
	t.Helper()
	file, anchor, _ := strings.Cut(target, "#")
	to := from.name
	if file != "" {
		to = path.Join(path.Dir(from.name), file)
	}
	if !anchorExists(to) {
		return "there is no such file"
	}
	if anchor == "" {
		return ""
	}
	if path.Ext(to) != ".md" {
		return "an anchor of what is no page"
	}
	if !slices.ContainsFunc(findPage(t, to).headings, func(h heading) bool { return h.anchor == anchor }) {
		return "the page has no such heading"
	}
	return ""
}

func anchorExists(name string) bool {
	_, err := os.Stat(filepath.Join(rootDir, filepath.FromSlash(name)))
	return !errors.Is(err, fs.ErrNotExist)
}

// TestLanguages asks a known language of every block.
func TestLanguages(t *testing.T) {
	for _, p := range allPages(t) {
		for _, b := range p.blocks {
			if !slices.Contains(languages, b.language) {
				t.Errorf("%s:%d: a block of language %q", p.name, b.line-1, b.language)
			}
		}
	}
}

// TestPaths asks that what looks like a path of the tree, in inline code, is there. A name in angle brackets, a pattern and
// what a run makes are none.
func TestPaths(t *testing.T) {
	for _, p := range allPages(t) {
		for _, c := range p.codes {
			name, isPath := pathOf(c.text)
			if isPath && !anchorExists(name) && !anchorExists(path.Join(path.Dir(p.name), name)) {
				t.Errorf("%s:%d: %s is not there", p.name, c.line, c.text)
			}
		}
	}
}

// pathRoots are the tree's own folders: a text that begins with one of them is a path.
var pathRoots = []string{"bench", "cmd", "docs", "e2e", "functions", "internal", "shared", "tools"}

// pathOf reads a path of the tree: it begins with one of the roots, or is a file at the top. A folder's last part may be
// a name of Go's in it (shared/x.Name), and a line number may follow.
func pathOf(text string) (string, bool) {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "./"), "/...")
	if strings.ContainsAny(text, " <>*{}$=") {
		return "", false
	}
	first, rest, _ := strings.Cut(text, "/")
	if rest == "" {
		return text, slices.Contains([]string{".md", ".yaml", ".mod"}, path.Ext(text)) && !strings.HasPrefix(text, ".") && text == path.Base(text) && anchorExists(text)
	}
	return strings.TrimSuffix(text, "/"), slices.Contains(pathRoots, first)
}

func TestPathOf(t *testing.T) {
	cases := map[string]string{
		"shared/market": "shared/market", "functions/": "", "./internal/x": "internal/x", "shared/": "", "e2e/stories/": "e2e/stories",
		"POST /token": "", "functions/<name>": "", "go.mod": "go.mod", "and/or": "", "200": "",
	}
	for text, want := range cases {
		if got, is := pathOf(text); is != (want != "") || is && got != want {
			t.Errorf("%q: %q, %v", text, got, is)
		}
	}
}
