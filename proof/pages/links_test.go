package pages

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

// languages are the allowed tags of a block.
var languages = []string{"console", "diff", "go", "http", "java", "javascript", "json", "mermaid", "php", "python",
	"sh", "text",
	"yaml"}

// TestLinks checks every relative link, and its anchor if it leads to a page.
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

// brokenLink returns why a link is broken, "" if it is not.
func brokenLink(t *testing.T, from page, target string) string {
	t.Helper()
	file, anchor, _ := strings.Cut(target, "#")
	to := from.name
	if file != "" {
		to = path.Join(path.Dir(from.name), file)
	}
	if !fileExists(to) {
		return "the file does not exist"
	}
	if anchor == "" {
		return ""
	}
	if path.Ext(to) != ".md" {
		return "only a Markdown page has anchors"
	}
	if !slices.ContainsFunc(findPage(t, to).headings, func(h heading) bool { return h.anchor == anchor }) {
		return "the page has no heading with this anchor"
	}
	return ""
}

func fileExists(name string) bool {
	_, err := os.Stat(filepath.Join(rootDir, filepath.FromSlash(name)))
	return !errors.Is(err, fs.ErrNotExist)
}

// TestLanguages checks that every block has a known language.
func TestLanguages(t *testing.T) {
	for _, p := range allPages(t) {
		for _, b := range p.blocks {
			if !slices.Contains(languages, b.language) {
				t.Errorf("%s:%d: the block has the unknown language %q", p.name, b.line-1, b.language)
			}
		}
	}
}

// TestPaths checks that every path of the tree in inline code exists. Names in angle brackets, patterns and paths that
// a run creates are exempt.
func TestPaths(t *testing.T) {
	for _, p := range allPages(t) {
		for _, c := range p.codes {
			name, isPath := pathOf(c.text)
			if isPath && !fileExists(name) && !fileExists(path.Join(path.Dir(p.name), name)) {
				t.Errorf("%s:%d: %s does not exist", p.name, c.line, c.text)
			}
		}
	}
}

// pathRoots are folders of the tree. A text that begins with one of them is a path.
var pathRoots = []string{
	"bench", "cmd", "deploy", "docs", "e2e", "functions", "gatewayctl", "internal", "local", "proof", "shared", "tools",
	"world",
}

// pathOf recognises a path of the tree: it begins with one of the roots, or is a file at the top. The last part may be
// a Go name (shared/x.Name), and a line number may follow.
func pathOf(text string) (string, bool) {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "./"), "/...")
	if strings.ContainsAny(text, " <>*{}$=") {
		return "", false
	}
	first, rest, _ := strings.Cut(text, "/")
	if rest == "" {
		return text, slices.Contains([]string{".md", ".yaml", ".mod"}, path.Ext(text)) &&
			!strings.HasPrefix(text, ".") && text == path.Base(text) && fileExists(text)
	}
	return strings.TrimSuffix(text, "/"), slices.Contains(pathRoots, first)
}

// TestPathOf checks which texts are paths.
func TestPathOf(t *testing.T) {
	cases := map[string]string{
		"shared/market": "shared/market", "functions/": "", "./internal/x": "internal/x", "shared/": "",
		"e2e/stories/": "e2e/stories",
		"POST /token":  "", "functions/<name>": "", "go.mod": "go.mod", "and/or": "", "200": "",
	}
	for text, want := range cases {
		if got, is := pathOf(text); is != (want != "") || is && got != want {
			t.Errorf("%q: path %q (%v), want %q", text, got, is, want)
		}
	}
}
