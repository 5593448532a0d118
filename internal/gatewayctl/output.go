package gatewayctl

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
		return writeJSON(s.Stdout, value)
	}
	if len(rows) == 1 && rows[0][0] == strings.ToUpper(rows[0][0]) {
		_, err := fmt.Fprintln(s.Stderr, "There is none.")
		return err
	}
	var text strings.Builder
	writer := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = replaceControlCharacters(cell)
		}
		fmt.Fprintln(writer, strings.Join(row, "\t"))
	}
	_ = writer.Flush() // a Builder takes everything
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(s.Stdout, strings.TrimRight(line, " \n")); err != nil {
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

// errorOutput is an error for programs. Usage is true where the command line or a setting is wrong, and nothing was tried.
type errorOutput struct {
	Error string `json:"error"`
	Usage bool   `json:"usage"`
}

// trackedWriter is an output that knows whether anything was written to it.
type trackedWriter struct {
	io.Writer
	written bool
}

// Write implements io.Writer.
func (b *trackedWriter) Write(text []byte) (int, error) {
	b.written = b.written || len(text) > 0
	return b.Writer.Write(text)
}

// replaceControlCharacters keeps what a merchant wrote from steering the terminal.
func replaceControlCharacters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '.'
		}
		return r
	}, text)
}

// formatTime writes a time, "" for none.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

// firstNonEmpty is the first text that is not empty.
func firstNonEmpty(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
