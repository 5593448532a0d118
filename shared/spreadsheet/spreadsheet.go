// Package spreadsheet makes texts of others harmless in a file that a spreadsheet opens.
//
// It writes no file. Its invariant: no part of an escaped text is read as a formula, with any separator of the
// spreadsheet.
package spreadsheet

import (
	"strings"
	"unicode"
)

// signs begin a formula. The last four are full-width.
const signs = "-=+@\uff1d\uff0b\uff0d\uff20"

// EscapeFormulas puts an apostrophe before each sign of a text at which a spreadsheet may begin a formula: at the start
// of a cell, behind spaces, invisible characters and quotes. A cell begins behind the separator of any locale, because
// a spreadsheet that splits at semicolons takes no notice of our quotes. A text that begins with a control character
// gets one at its start.
func EscapeFormulas(text string) string {
	var escaped strings.Builder
	if text != "" && strings.ContainsRune("\t\r\n\x00", rune(text[0])) {
		escaped.WriteByte('\'')
	}
	atStart := true
	for _, r := range text {
		switch {
		case atStart && strings.ContainsRune(signs, r):
			escaped.WriteByte('\'')
			atStart = false
		case strings.ContainsRune(";,\t\r\n", r):
			atStart = true
		case r != '"' && !unicode.In(r, unicode.Z, unicode.C):
			atStart = false
		}
		escaped.WriteRune(r)
	}
	return escaped.String()
}
