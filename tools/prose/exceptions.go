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
			if row.rule == f.rule && (f.path == row.path || strings.HasPrefix(f.path, row.path+"/")) && strings.Contains(e.line(f), row.text) {
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
			found = append(found, finding{path: e.file, line: 1, rule: "exception", message: fmt.Sprintf("delete the unused exception %q of %s in %s", row.text, row.rule, row.path)})
		}
	}
	return found
}

// planted are offences that vale has to find, and their clean counterparts, which it may not find.
type planted struct{ rows [][]string }

// readPlanted reads rows of a rule, an offence and a clean counterpart.
func readPlanted(file string) (*planted, error) {
	rows, err := rowsOf(file, 3)
	if err != nil {
		return nil, err
	}
	return &planted{rows}, nil
}

// The names of the pages of planted sentences.
const (
	plantedPage = "planted offences"
	cleanPage   = "clean counterparts"
)

// pages returns a page of all offences and one of all counterparts. A row's index is its line.
func (p *planted) pages() []*page {
	offences, clean := &page{name: plantedPage}, &page{name: cleanPage}
	for i, row := range p.rows {
		offences.addAlone(i, row[1])
		clean.addAlone(i, row[2])
	}
	return []*page{offences, clean}
}

// remove takes the planted findings out. It fails if one is missing, or if a counterpart was found.
func (p *planted) remove(found []finding) ([]finding, error) {
	seen := make([]bool, len(p.rows))
	var left []finding
	for _, f := range found {
		switch {
		case f.path == cleanPage:
			return nil, fmt.Errorf("vale finds %q in the clean sentence %q", f.message, p.rows[f.line][2])
		case f.path != plantedPage:
			left = append(left, f)
		case f.rule == p.rows[f.line][0]:
			seen[f.line] = true
		}
	}
	for i, row := range p.rows {
		if !seen[i] {
			return nil, fmt.Errorf("vale does not find the planted offence %q of the rule %s", row[1], row[0])
		}
	}
	return left, nil
}
