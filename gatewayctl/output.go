package gatewayctl

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// table is the output for people: rows of cells.
type table [][]string

// show writes a result: with --json as JSON, else as a table.
func (s *session) show(value any, rows table) error {
	if s.JSON {
		return writeJSON(s.Stdout, value)
	}
	heading := ""
	if s.isDryRun {
		heading = "With --yes this would be:\n"
	}
	return rows.write(s.Stdout, heading)
}

// write writes the rows behind a heading.
func (rows table) write(to io.Writer, heading string) error {
	var text strings.Builder
	text.WriteString(heading)
	writer := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = replaceControlCharacters(maskQueries(cell))
		}
		fmt.Fprintln(writer, strings.Join(row, "\t"))
	}
	_ = writer.Flush() // a Builder never fails
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(to, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// showView writes one view. Its fields with a row tag are the rows of the table, unless they are empty.
func (s *session) showView(view any) error { return s.show(view, viewRows(view)) }

// showList writes a list of views. Their fields with a col tag are the columns of the table.
func showList[T any](s *session, views []T) error {
	if len(views) == 0 && !s.JSON {
		_, err := fmt.Fprintln(s.Stderr, "There is none.")
		return err
	}
	return s.show(append([]T{}, views...), listRows(views))
}

// viewRows are the labels and texts of a view, without empty texts.
func viewRows(view any) (rows table) {
	labels, texts := viewCells(view, "row")
	for i, text := range texts {
		if text != "" {
			rows = append(rows, []string{labels[i], text})
		}
	}
	return rows
}

// listRows are a heading and a row for each view.
func listRows[T any](views []T) (rows table) {
	for _, view := range views {
		heading, texts := viewCells(view, "col")
		if rows == nil {
			rows = table{heading}
		}
		rows = append(rows, texts)
	}
	return rows
}

// viewCells returns the tags and the texts of a struct's fields that have a tag, those of embedded structs included.
func viewCells(view any, tag string) (labels, texts []string) {
	value := reflect.ValueOf(view)
	for _, field := range reflect.VisibleFields(value.Type()) {
		label, tagged := field.Tag.Lookup(tag)
		if !tagged {
			continue
		}
		cell := value.FieldByIndex(field.Index)
		text := ""
		if !cell.IsZero() || !strings.Contains(field.Tag.Get("json"), ",omit") {
			text = cellText(cell)
		}
		labels, texts = append(labels, label), append(texts, text)
	}
	return labels, texts
}

// cellText returns a value's text: a list separated by commas, a map as its values and keys.
func cellText(value reflect.Value) string {
	if at, ok := value.Interface().(time.Time); ok {
		return formatTime(at)
	}
	var texts []string
	switch value.Kind() {
	case reflect.Pointer:
		return cellText(value.Elem())
	case reflect.Slice:
		for i := range value.Len() {
			texts = append(texts, cellText(value.Index(i)))
		}
	case reflect.Map:
		for iter := value.MapRange(); iter.Next(); {
			texts = append(texts, cellText(iter.Value())+" "+cellText(iter.Key()))
		}
		slices.Sort(texts)
	default:
		return fmt.Sprint(value.Interface())
	}
	return joinComma(texts)
}

func writeJSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// errorOutput is an error for programs. Usage is true for ExitUsage.
type errorOutput struct {
	Error string `json:"error"`
	Usage bool   `json:"usage"`
}

// trackedWriter records whether anything was written.
type trackedWriter struct {
	io.Writer
	written bool
}

// Write implements io.Writer.
func (b *trackedWriter) Write(text []byte) (int, error) {
	b.written = b.written || len(text) > 0
	return b.Writer.Write(text)
}

// replaceControlCharacters removes terminal control sequences from a merchant's text. Format characters are escaped, so
// that the columns of a table stay aligned.
func replaceControlCharacters(text string) string {
	return escapeUnprintable(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '.'
		}
		return r
	}, text))
}

// formatTime returns a time in UTC, "" for none.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

func joinComma(texts []string) string { return strings.Join(texts, ", ") }

// nonNil returns a list that is [] in JSON if it is empty.
func nonNil(texts []string) []string { return append([]string{}, texts...) }

// mapAll returns the result of change for each item. A result without items is [] in JSON.
func mapAll[T, V any](items []T, change func(T) V) []V {
	changed := []V{}
	for _, item := range items {
		changed = append(changed, change(item))
	}
	return changed
}

// plural returns a number with its noun.
func plural(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// maskedQuery replaces the query of a URL: a merchant may keep a secret in it.
const maskedQuery = "?***"

// addressEnds are the characters that end an address in a text: a merchant's may have each other one.
const addressEnds = " \t\r\n"

// addressClosers are the characters behind an address that belong to the text, although an address may have them.
const addressClosers = ",;:.'`>)\\\""

// cleanWriter cleans everything that the tool writes, such as tables, indented JSON and errors. Each Write has whole
// addresses.
type cleanWriter struct {
	next  io.Writer
	clean func(string) string
}

// Write implements io.Writer.
func (w cleanWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.next, w.clean(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// cleanText masks the queries of a text, and escapes what a terminal would not show.
func cleanText(text string) string { return escapeUnprintable(maskQueries(text)) }

// maskQueries replaces the query of each URL in a text.
func maskQueries(text string) string {
	var masked strings.Builder
	for {
		start := strings.Index(text, "://")
		if start < 0 {
			break
		}
		end := len(text)
		if length := strings.IndexAny(text[start:], addressEnds); length >= 0 {
			end = start + length
		}
		address := text[:start] + trimClosers(text[start:end])
		if query := strings.IndexByte(address[start:], '?'); query >= 0 {
			masked.WriteString(address[:start+query] + maskedQuery)
		} else {
			masked.WriteString(address)
		}
		masked.WriteString(text[len(address):end])
		text = text[end:]
	}
	return masked.String() + text
}

// trimClosers returns an address without the punctuation of the text behind it. A bracket that it opened stays.
func trimClosers(address string) string {
	for {
		last := len(address) - 1
		isOwn := strings.HasSuffix(address, ")") && strings.Count(address, "(") >= strings.Count(address, ")")
		if last < 0 || isOwn || !strings.Contains(addressClosers, address[last:]) {
			return address
		}
		address = address[:last]
	}
}

// escapeUnprintable writes control and format characters, such as those that reverse a text's direction, as \u202e.
// JSON keeps its meaning by it. Line ends and tabs stay, and so do bytes that are not UTF-8.
func escapeUnprintable(text string) string {
	var escaped strings.Builder
	for i, char := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		if char == '\n' || char == '\t' || !reordersText(char) && !unicode.IsControl(char) {
			escaped.WriteString(text[i : i+size])
			continue
		}
		for _, unit := range utf16.Encode([]rune{char}) {
			fmt.Fprintf(&escaped, `\u%04x`, unit)
		}
	}
	return escaped.String()
}

// reordersText reports whether a character is invisible and changes how others are shown: Unicode's format characters,
// its line and paragraph separators, and its variation selectors and private ones.
func reordersText(char rune) bool {
	return unicode.In(char, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Co)
}
