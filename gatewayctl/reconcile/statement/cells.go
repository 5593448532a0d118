package statement

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// separators are the signs between cells that a header may decide.
var separators = []string{",", ";", "\t", "|"}

var errQuote = errors.New("a quoted cell does not end on its line, or a quote is within a cell: the file may be " +
	"truncated")

// splitCells splits a line. A cell may be in double quotes, within which a quote is written twice.
func splitCells(line, separator string) ([]string, error) {
	var cells []string
	for {
		if !strings.HasPrefix(line, `"`) {
			cell, rest, more := strings.Cut(line, separator)
			if strings.Contains(cell, `"`) {
				return nil, errQuote
			}
			if cells = append(cells, strings.TrimSpace(cell)); !more {
				return cells, nil
			}
			line = rest
			continue
		}
		cell, rest, err := quotedCell(line[1:])
		if err != nil {
			return nil, err
		}
		cells = append(cells, strings.TrimSpace(cell))
		if rest == "" {
			return cells, nil
		}
		if !strings.HasPrefix(rest, separator) {
			return nil, errQuote
		}
		line = rest[len(separator):]
	}
}

// quotedCell returns the text to its closing quote, and what follows.
func quotedCell(text string) (cell, rest string, err error) {
	var all strings.Builder
	for {
		part, after, closed := strings.Cut(text, `"`)
		all.WriteString(part)
		if !closed {
			return "", "", errQuote
		}
		if !strings.HasPrefix(after, `"`) {
			return all.String(), after, nil
		}
		all.WriteByte('"')
		text = after[1:]
	}
}

// header is the line with the names of the columns.
type header struct {
	cells     []string
	separator string
	column    map[string]int    // by the name of the generic form
	names     map[string]string // in the file
	kind      int               // the column of the types, -1 without one
}

// at returns the cell of a column, "" in a file without it.
func (h *header) at(cells []string, column string) string {
	if i, found := h.column[column]; found {
		return cells[i]
	}
	return ""
}

// name is a column as the file names it.
func (h *header) name(column string) string { return h.names[column] }

// readHeader reads to the header and binds the columns. Without a declared separator, the only one with which the
// header has all columns is used.
func readHeader(lines *lineReader, m Mapping, skipped map[string]int) (*header, error) {
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the file ends before its header")
		}
		if err != nil {
			return nil, err
		}
		if m.HeaderLine == 0 && strings.TrimSpace(line) == "" {
			skipped[skippedBlank]++
			continue
		}
		if m.HeaderLine > lines.number {
			skipped[skippedPreamble]++
			continue
		}
		candidates := separators
		if m.Separator != "" {
			candidates = []string{m.Separator}
		}
		return chooseHeader(line, lines.number, candidates, m)
	}
}

func chooseHeader(line string, number int, candidates []string, m Mapping) (*header, error) {
	var nearest error
	fewest := -1
	var found []*header
	for _, separator := range candidates {
		cells, err := splitCells(line, separator)
		if err != nil {
			nearest = cmpOr(nearest, err)
			continue
		}
		h, missing, err := bindColumns(cells, m)
		switch {
		case err != nil:
			return nil, &Fault{Line: number, Problem: err.Error()}
		case len(missing) == 0:
			h.separator = separator
			found = append(found, h)
		case fewest < 0 || len(missing) < fewest:
			fewest = len(missing)
			nearest = fmt.Errorf("is not the header: it lacks the column %s. Name the columns in a mapping file, "+
				"and its line as \"header_line\" if lines precede it", strings.Join(missing, " and "))
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, &Fault{Line: number, Problem: "more than one separator fits: give --separator"}
	}
	return nil, &Fault{Line: number, Problem: nearest.Error()}
}

func cmpOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// bindColumns finds the columns in a header, and the ones that it lacks.
func bindColumns(cells []string, m Mapping) (h *header, missing []string, err error) {
	h = &header{cells: cells, column: map[string]int{}, names: map[string]string{}, kind: -1}
	for _, column := range Columns() {
		name := column
		if own, mapped := m.Columns[column]; mapped {
			name = own
		}
		at, err := findColumn(cells, name)
		switch {
		case err != nil:
			return nil, nil, err
		case at >= 0:
			h.column[column], h.names[column] = at, name
		case m.Columns[column] != "":
			missing = append(missing, name)
		}
	}
	has := func(column string) bool { _, found := h.column[column]; return found }
	for _, required := range []struct {
		column  string
		present bool
	}{
		{ColumnAmount, has(ColumnAmount)}, {ColumnTime, has(ColumnTime)},
		{ColumnCurrency, has(ColumnCurrency) != (m.Currency != "")},
		{ColumnStatus, has(ColumnStatus) != (m.Status != "")},
		{ColumnReference, has(ColumnReference) || has(ColumnOrderID)},
	} {
		if !required.present && !slices.Contains(missing, required.column) && m.Columns[required.column] == "" {
			if has(required.column) {
				return nil, nil, fmt.Errorf("the column %s is in the file and in the mapping: leave one out",
					required.column)
			}
			missing = append(missing, required.column)
		}
	}
	if m.Types != nil {
		if h.kind, err = findColumn(cells, m.Types.Column); err != nil {
			return nil, nil, err
		}
		if h.kind < 0 {
			missing = append(missing, m.Types.Column)
		}
	}
	return h, missing, nil
}

// findColumn returns the number of a column, -1 if there is none.
func findColumn(cells []string, name string) (int, error) {
	at := -1
	for i, cell := range cells {
		if !strings.EqualFold(cell, name) {
			continue
		}
		if at >= 0 {
			return -1, fmt.Errorf("the column %q is there twice: remove one, or name another in the mapping", name)
		}
		at = i
	}
	return at, nil
}
