package output

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Terminal is what a table's terminal can show. The zero value is a pipe or a file, whose rows are plain and whole.
type Terminal struct {
	Columns int  // the width in characters, 0 for no terminal
	Colours bool // the terminal shows colours, and the user wants them
}

// Sequences of a terminal.
const (
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"

	// ClearScreen clears a terminal, and begins at its top.
	ClearScreen = "\x1b[H\x1b[2J"
)

// colours are those of the words that a cell consists of: how a transaction, a notification or a circuit ended so far.
var colours = map[string]string{
	"successful": green, "done": green, "delivered": green, "closed": green, "DeliveredToTerminal": green,
	"DeliveredToNetwork": green,
	"failed":             red, "refused": red, "cancelled": red, "expired": red, "dead-letter": red, "open": red,
	"DeliveryImpossible": red, "conflict": red, "credentials": red, "lookups-fail": red, "endpoint-disabled": red,
	"unknown": yellow, "pending": yellow, "reserved": yellow, "waiting": yellow, "parked": yellow, "suspect": yellow,
	"half-open": yellow, "unknown-outcome": yellow, "partial": yellow, "not counted": yellow,
}

// uncut are the columns that a person copies: a cut one would be useless.
var uncut = []string{"ID", "KEY", "COMMAND", "URL"}

const (
	gap      = 2 // spaces between two columns
	ellipsis = "…"
	// minColumn is the width to which a column is cut at most.
	minColumn = 6
)

// isList reports whether the first row is a heading. Its columns are then cut to the width.
func (rows Table) isList() bool {
	isSmall := func(cell string) bool { return cell != strings.ToUpper(cell) }
	return len(rows) > 1 && !slices.ContainsFunc(rows[0], isSmall)
}

// writeTo writes clean rows for a terminal. The columns of a list are cut so that a row fits into one line, as far as
// they may be cut. The values of other tables are whole: the terminal wraps them.
func (rows Table) writeTo(terminal Terminal, text *strings.Builder) {
	widths := rows.widths()
	isList := rows.isList()
	if isList {
		shrink(widths, rows[0], terminal.Columns)
	}
	for i, row := range rows {
		for j, cell := range row {
			visible := cell
			if isList {
				visible = cut(cell, widths[j])
			}
			padding := ""
			if j < len(row)-1 {
				padding = strings.Repeat(" ", max(0, widths[j]-utf8.RuneCountInString(visible))+gap)
			}
			text.WriteString(terminal.colour(visible, cell, isList && i == 0) + padding)
		}
		text.WriteString("\n")
	}
}

// widths are those of the longest cells.
func (rows Table) widths() (widths []int) {
	for _, row := range rows {
		for j, cell := range row {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// shrink takes from the widest column that may be cut, until a row fits.
func shrink(widths []int, heading []string, columns int) {
	total := gap * (len(widths) - 1)
	for _, width := range widths {
		total += width
	}
	for ; total > columns; total-- {
		widest := -1
		for j, width := range widths {
			least := max(minColumn, utf8.RuneCountInString(heading[j]))
			if width > least && !slices.Contains(uncut, heading[j]) && (widest < 0 || width > widths[widest]) {
				widest = j
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// cut shortens a text to a width, with an ellipsis at its end.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + ellipsis
}

// colour colours a visible text by its whole cell.
func (t Terminal) colour(visible, cell string, isHeading bool) string {
	sequence := colours[cell]
	if isHeading {
		sequence = bold
	}
	if !t.Colours || sequence == "" || visible == "" {
		return visible
	}
	return fmt.Sprint(sequence, visible, reset)
}
