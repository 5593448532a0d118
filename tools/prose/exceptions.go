package main

import (
	"fmt"
	"os"
	"strings"
)

// exception is one row of exceptions.txt.
type exception struct {
	path, rule, text, reason string
	used                     bool
}

// exceptions are findings that stay.
type exceptions struct {
	file  string
	rows  []*exception
	lines map[string][]string // by path, as read
}

// readExceptions reads rows of a path or folder, a rule, a part of the source line, and the reason.
func readExceptions(file string) (*exceptions, error) {
	rows, err := rowsOf(file, 4)
	if err != nil {
		return nil, err
	}
	e := &exceptions{file: file, lines: map[string][]string{}}
	for _, row := range rows {
		e.rows = append(e.rows, &exception{path: row[0], rule: row[1], text: row[2], reason: row[3]})
	}
	return e, nil
}

// remove returns the findings that no row allows, and marks the rows that allow one.
func (e *exceptions) remove(found []finding) []finding {
	var left []finding
	for _, f := range found {
		allowed := false
		for _, row := range e.rows {
			below := f.path == row.path || strings.HasPrefix(f.path, row.path+"/")
			if below && row.rule == f.rule && strings.Contains(e.line(f), row.text) {
				row.used, allowed = true, true
			}
		}
		if !allowed {
			left = append(left, f)
		}
	}
	return left
}

// line returns the source line of a finding.
func (e *exceptions) line(f finding) string {
	lines, known := e.lines[f.path]
	if !known {
		text, _ := os.ReadFile(f.path)
		lines = strings.Split(string(text), "\n")
		e.lines[f.path] = lines
	}
	if f.line > len(lines) {
		return ""
	}
	return lines[f.line-1]
}

// unused returns a finding for each row that allowed nothing.
func (e *exceptions) unused() []finding {
	var found []finding
	for _, row := range e.rows {
		if !row.used {
			message := fmt.Sprintf("delete the unused row for %q of the rule %s in %s", row.text, row.rule, row.path)
			found = append(found, finding{e.file, 1, "exception", message})
		}
	}
	return found
}
