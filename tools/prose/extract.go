package main

import (
	"path/filepath"
	"regexp"
	"strings"
)

// comments maps the name or the extension of a file to what begins a comment there. An empty value is Markdown.
var comments = map[string]string{
	".md":   "",
	".yaml": "#", ".yml": "#", ".toml": "#", ".sh": "#", ".py": "#", ".txtar": "#", ".txt": "#", "Makefile": "#",
	".gitignore": "#", ".shellcheckrc": "#", ".cfnlintrc": "#",
	".mjs": "//", ".ts": "//", ".java": "//", ".php": "//",
}

var (
	shebang = regexp.MustCompile(`^#!.*\b(ba)?sh\b`)
	// described is a YAML field that people read, with its text or with the sign of a block that follows.
	described = regexp.MustCompile(`^(\s*(?:- )?)(?:Description|AlarmDescription|description|summary|title): *(.*)$`)
	// describedInline is such a field inside braces.
	describedInline = regexp.MustCompile(
		`\b(?:Description|description|summary|title): *("(?:[^"\\]|\\.)*"|[^"{}\[\],][^{},]*)`)
	echoed = regexp.MustCompile(`\becho +(?:"((?:[^"\\]|\\.)*)"|'([^']*)')`)
)

// read takes the prose out of a file. It returns nil for a kind of file that has none.
func read(name, text string) (*page, error) {
	if filepath.Ext(name) == ".go" {
		return readGo(name, text)
	}
	marker, known := comments[filepath.Base(name)]
	if !known {
		marker, known = comments[filepath.Ext(name)]
	}
	if !known && shebang.MatchString(text) {
		marker, known = "#", true
	}
	if !known {
		return nil, nil
	}
	p := &page{name: name}
	lines := strings.Split(text, "\n")
	if marker == "" {
		for at, line := range lines {
			p.add(at+1, line)
		}
		return p, nil
	}
	readComments(p, lines, marker)
	switch filepath.Ext(name) {
	case ".yaml", ".yml":
		readDescriptions(p, lines)
	default:
		readEchoes(p, lines)
	}
	return p, nil
}

// readComments takes comments that are whole lines, and those behind code.
func readComments(p *page, lines []string, marker string) {
	for at, line := range lines {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "-- ") && filepath.Ext(p.name) == ".txtar" {
			break // the files of an archive
		}
		if comment, whole := strings.CutPrefix(trimmed, marker); whole && !strings.HasPrefix(comment, "!") {
			p.add(at+1, strings.TrimPrefix(strings.TrimLeft(comment, marker), " "))
			continue
		}
		p.end()
		for _, between := range []string{" " + marker + " ", " ## "} {
			if _, comment, found := strings.Cut(line, between); found {
				p.addAlone(at+1, comment)
				break
			}
		}
	}
	p.end()
}

// readDescriptions takes the descriptions of a CloudFormation template or an OpenAPI document.
func readDescriptions(p *page, lines []string) {
	block := -1 // the indentation of the field whose block is read
	for at, line := range lines {
		if block >= 0 {
			if strings.TrimSpace(line) == "" || indentation(line) > block {
				p.add(at+1, strings.TrimPrefix(line, strings.Repeat(" ", block+2)))
				continue
			}
			block = -1
			p.end()
		}
		field := described.FindStringSubmatch(line)
		switch {
		case field == nil:
			for _, inline := range describedInline.FindAllStringSubmatch(line, -1) {
				p.addAlone(at+1, strings.Trim(inline[1], `"`))
			}
		case strings.HasPrefix(field[2], "|"), strings.HasPrefix(field[2], ">"):
			block = len(field[1])
		default:
			p.addAlone(at+1, strings.Trim(field[2], `"'`))
		}
	}
	p.end()
}

// readEchoes takes the texts that a script or a make target prints.
func readEchoes(p *page, lines []string) {
	for at, line := range lines {
		for _, text := range echoed.FindAllStringSubmatch(line, -1) {
			p.addAlone(at+1, text[1]+text[2])
		}
	}
}

// indentation counts the spaces at the beginning of a line.
func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
