package control

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// table is what people read: rows of texts, the heading first.
type table [][]string

// show writes an answer: as JSON for programs, else as a table. An empty list is [] in JSON and says so to people.
func (s *session) show(value any, rows table) error {
	if s.JSON {
		return writeJSON(s.Out, value)
	}
	if len(rows) == 1 && rows[0][0] == strings.ToUpper(rows[0][0]) {
		_, err := fmt.Fprintln(s.Notes, "There is none.")
		return err
	}
	var text strings.Builder
	writer := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable(cell)
		}
		fmt.Fprintln(writer, strings.Join(row, "\t"))
	}
	_ = writer.Flush() // a Builder takes everything
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(s.Out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// writeJSON writes a document for programs.
func writeJSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// failed is an error for programs. Usage is true where the command line or a setting is wrong, and nothing was tried.
type failed struct {
	Error string `json:"error"`
	Usage bool   `json:"usage"`
}

// begun is an output that knows whether anything was written to it.
type begun struct {
	io.Writer
	written bool
}

// Write implements io.Writer.
func (b *begun) Write(text []byte) (int, error) {
	b.written = b.written || len(text) > 0
	return b.Writer.Write(text)
}

// printable keeps what a merchant wrote from steering the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '.'
		}
		return r
	}, text)
}

// moment writes a time, "" for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

// or is the first text that is not empty.
func or(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
