package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// rootDir is the root of the tree, relative to this package.
const rootDir = "../.."

// ignored are folders without documentation: those in .gitignore, and git's own.
var ignored = []string{".git", ".aws-sam", ".local", "bin", "dist", "node_modules"}

// page is one Markdown file.
type page struct {
	name     string // relative to the root, with slashes
	blocks   []block
	headings []heading
	links    []lineText // targets of [text](target)
	codes    []lineText // `inline code`
	indented []lineText // code lines indented by four spaces
}

// block is a fenced code block.
type block struct {
	line     int // its first line of code
	language string
	section  string // the second-level heading above it
	text     string
	comment  string // the HTML comment above the fence: <!-- comment -->
}

// heading is a heading with GitHub's anchor.
type heading struct {
	anchor string
	line   int
}

// lineText is a part of a line.
type lineText struct {
	line int
	text string
}

var (
	link          = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	code          = regexp.MustCompile("`([^`]+)`")
	titlePattern  = regexp.MustCompile(`^(#{1,6}) +(.*?) *#*$`)
	comment       = regexp.MustCompile(`^ *<!-- (.*) -->$`)
	removedMarkup = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// pages returns all Markdown files of the tree. They are read once.
var pages = sync.OnceValues(func() ([]page, error) {
	var found []page
	err := filepath.WalkDir(rootDir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains(ignored, entry.Name()) {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(rootDir, name)
		found = append(found, parsePage(filepath.ToSlash(relative), string(text)))
		return err
	})
	return found, err
})

// allPages returns all pages.
func allPages(t *testing.T) []page {
	t.Helper()
	found, err := pages()
	if err != nil || len(found) == 0 {
		t.Fatalf("%d pages: %v", len(found), err)
	}
	return found
}

// readFile returns the text of a file of the tree.
func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(rootDir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// findPage returns one page.
func findPage(t *testing.T, name string) page {
	t.Helper()
	for _, p := range allPages(t) {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("the tree has no page %s", name)
	return page{}
}

// parsePage parses a page. A block without an end reaches to the end of the page.
func parsePage(name, text string) page {
	p := page{name: name}
	var open *block
	var section, above string
	seen := map[string]int{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && open == nil:
			language, _, _ := strings.Cut(fence, " ")
			open = &block{line: number + 1, language: language, section: section, comment: above}
		case isFence:
			p.blocks, open = append(p.blocks, *open), nil
		case open != nil:
			open.text += line + "\n"
		default:
			if title := titlePattern.FindStringSubmatch(line); title != nil {
				if len(title[1]) == 2 {
					section = title[2]
				}
				p.headings = append(p.headings, heading{anchorOf(title[2], seen), number})
			}
			if strings.HasPrefix(line, "    ") {
				p.indented = append(p.indented, lineText{number, strings.TrimSpace(line)})
			}
			for _, match := range code.FindAllStringSubmatch(line, -1) {
				p.codes = append(p.codes, lineText{number, match[1]})
			}
			for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
				p.links = append(p.links, lineText{number, match[1]})
			}
		}
		above = ""
		if match := comment.FindStringSubmatch(line); match != nil {
			above = match[1]
		}
	}
	if open != nil {
		p.blocks = append(p.blocks, *open)
	}
	return p
}

// anchorOf returns GitHub's anchor of a title. The second one of the same text gets "-1".
func anchorOf(title string, seen map[string]int) string {
	title = link.ReplaceAllString(strings.ReplaceAll(title, "[", ""), "")
	anchor := strings.ReplaceAll(removedMarkup.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
	times := seen[anchor]
	seen[anchor]++
	if times > 0 {
		anchor += "-" + string(rune('0'+times))
	}
	return anchor
}

// TestParsePage checks headings, links, inline code and blocks of a page.
func TestParsePage(t *testing.T) {
	p := parsePage("x.md", "# A `b` & c: d\n\ntext [l](m.md#n) `code` [`o`](p)\n<!-- mark -->\n"+
		"```go\n[x](y)\n# no title\n```\n## Z\n## Z\n")
	if p.headings[0].anchor != "a-b--c-d" || p.headings[1].anchor != "z" || p.headings[2].anchor != "z-1" {
		t.Errorf("headings %+v", p.headings)
	}
	if len(p.links) != 2 || p.links[0].text != "m.md#n" || p.links[1].text != "p" {
		t.Errorf("links %+v", p.links)
	}
	if len(p.codes) != 3 || p.codes[1].text != "code" {
		t.Errorf("codes %+v", p.codes)
	}
	if len(p.blocks) != 1 || p.blocks[0].language != "go" || p.blocks[0].line != 6 || p.blocks[0].comment != "mark" ||
		p.blocks[0].text != "[x](y)\n# no title\n" {
		t.Errorf("blocks %+v", p.blocks)
	}
}
