package main

import (
	"regexp"
	"sort"
	"strings"
)

// page is the prose of one file, one paragraph a line, as vale reads it.
type page struct {
	name       string
	paragraphs []paragraph
	names      []declaration // of a Go file
	open       bool          // the last paragraph continues
	fenced     bool          // inside a fenced code block
}

// paragraph is a paragraph, a list item or a table cell, joined to one line.
type paragraph struct {
	text   string
	starts []start // ascending by offset
}

// start is where the text of one source line begins in a paragraph.
type start struct{ offset, line int }

var (
	// notProse is code, a decision anchor, a documentation link, a comment, an address, or a command-line flag.
	notProse = regexp.MustCompile(strings.Join([]string{
		"``.+?``|`[^`]+`",
		`"[a-z0-9]+(-[a-z0-9]+)+"`,
		`\[\*?[A-Za-z]\w*(\.\w+)*\]([^(]|$)`,
		`<!--.*?-->`,
		`https?://[^\s)"]+`,
		`\B--?[a-z][a-z0-9-]+`,
	}, "|"))
	// blockStart begins a new block of Markdown: a list item, a heading or a quotation.
	blockStart = regexp.MustCompile(`^([-*+>]|\d+[.)]|#+)\s`)
)

// masked takes the place of what is not prose. It counts as one word.
const masked = "`x`"

// add appends a line of Markdown or of a comment, without its comment marker.
func (p *page) add(line int, text string) {
	trimmed := strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(trimmed, "```"):
		p.end()
		p.fenced = !p.fenced
		return
	case p.fenced:
		return
	case trimmed == "":
		p.end()
		return
	case !p.open && (strings.HasPrefix(text, "\t") || strings.HasPrefix(text, "    ")):
		return // an indented code block
	}
	trimmed = notProse.ReplaceAllString(trimmed, masked)
	if strings.HasPrefix(trimmed, "|") {
		for cell := range strings.SplitSeq(trimmed, "|") {
			p.addAlone(line, cell)
		}
		return
	}
	if blockStart.MatchString(trimmed) {
		p.end()
	}
	p.join(line, trimmed)
}

// addAlone appends a text that is a paragraph of its own.
func (p *page) addAlone(line int, text string) {
	p.end()
	if text = strings.Join(strings.Fields(text), " "); text != "" {
		p.join(line, notProse.ReplaceAllString(text, masked))
	}
	p.end()
}

// end closes the last paragraph.
func (p *page) end() { p.open = false }

// join appends to the open paragraph, or opens one.
func (p *page) join(line int, text string) {
	if !p.open {
		p.paragraphs = append(p.paragraphs, paragraph{})
		p.open = true
	}
	last := &p.paragraphs[len(p.paragraphs)-1]
	if last.text != "" {
		last.text += " "
	}
	last.starts = append(last.starts, start{len(last.text), line})
	last.text += text
}

// String is the page as vale reads it: paragraph n is on line 2n+1.
func (p *page) String() string {
	var text strings.Builder
	for _, paragraph := range p.paragraphs {
		text.WriteString(paragraph.text)
		text.WriteString("\n\n")
	}
	return text.String()
}

// source converts a place of the page, as vale gives it, to a line of the file.
func (p *page) source(line, column int) int {
	starts := p.paragraphs[(line-1)/2].starts
	after := sort.Search(len(starts), func(i int) bool { return starts[i].offset >= column })
	return starts[max(after-1, 0)].line
}
