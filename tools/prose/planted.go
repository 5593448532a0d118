package main

import (
	"errors"
	"fmt"
	"strings"
)

// planted are offences that vale has to find, and clean counterparts, in which it may find nothing.
type planted []plantedRow

// plantedRow is one row of planted.txt. message is a part of the finding's message.
type plantedRow struct{ rule, message, offence, clean string }

// The names of the pages of planted sentences.
const (
	offencesPage = "planted offences"
	cleanPage    = "clean counterparts"
)

// readPlanted reads planted.txt.
func readPlanted(file string) (planted, error) {
	rows, err := rowsOf(file, 4)
	if err != nil {
		return nil, err
	}
	var p planted
	for _, row := range rows {
		p = append(p, plantedRow{row[0], row[1], row[2], row[3]})
	}
	return p, nil
}

// pages returns a page of all offences and one of all counterparts. The index of a row is its line.
func (p planted) pages() []*page {
	offences, clean := &page{name: offencesPage}, &page{name: cleanPage}
	for i, row := range p {
		offences.addAlone(i, row.offence)
		clean.addAlone(i, row.clean)
	}
	return []*page{offences, clean}
}

// remove returns the findings of other pages. The error names each missing offence and each finding in a counterpart.
func (p planted) remove(found []finding) ([]finding, error) {
	seen := make([]bool, len(p))
	var left []finding
	var wrong error
	for _, f := range found {
		switch f.path {
		case cleanPage:
			wrong = errors.Join(wrong, fmt.Errorf("vale finds %q in the clean sentence %q", f.message, p[f.line].clean))
		case offencesPage:
			row := p[f.line]
			seen[f.line] = seen[f.line] || f.rule == row.rule && strings.Contains(f.message, row.message)
		default:
			left = append(left, f)
		}
	}
	for i, row := range p {
		if !seen[i] {
			wrong = errors.Join(wrong, fmt.Errorf("vale does not find %s %q in %q", row.rule, row.message, row.offence))
		}
	}
	if wrong != nil {
		return nil, fmt.Errorf("correct tools/prose/styles or planted.txt: %w", wrong)
	}
	return left, nil
}
