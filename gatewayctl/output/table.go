// Package output turns the results of gatewayctl's commands into tables, JSON and clean texts.
//
// Everything that the tool prints passes a CleanWriter: no query of a URL, which may have a merchant's secret, and no
// character that reorders a terminal's text leaves the tool.
package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// FormatTime returns a time in UTC, "" for none.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

// JoinComma joins texts by commas.
func JoinComma(texts []string) string { return strings.Join(texts, ", ") }

// Plural returns a number with its noun.
func Plural(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Table is the output for people: rows of cells.
type Table [][]string

// Write writes the rows behind a heading. To a CleanWriter of a terminal it writes colours, and rows of its width.
func (rows Table) Write(to io.Writer, heading string) error {
	var text strings.Builder
	text.WriteString(heading)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = ReplaceControlCharacters(MaskQueries(cell))
		}
	}
	if clean, isClean := to.(CleanWriter); isClean && clean.Terminal.Columns > 0 {
		to = clean.Next // the cells are clean, and the writer would escape the colours
		rows.writeTo(clean.Terminal, &text)
	} else {
		writer := tabwriter.NewWriter(&text, 0, 0, gap, ' ', 0)
		for _, row := range rows {
			fmt.Fprintln(writer, strings.Join(row, "\t"))
		}
		_ = writer.Flush() // a Builder never fails
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(to, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// Rows are the labels and texts of a view, without empty texts.
func Rows(view any) (rows Table) {
	labels, texts := Cells(view, "row")
	for i, text := range texts {
		if text != "" {
			rows = append(rows, []string{labels[i], text})
		}
	}
	return rows
}

// ListRows are a heading and a row for each view.
func ListRows[T any](views []T) (rows Table) {
	for _, view := range views {
		heading, texts := Cells(view, "col")
		if rows == nil {
			rows = Table{heading}
		}
		rows = append(rows, texts)
	}
	return rows
}

// Cells returns the tags and the texts of a struct's fields that have a tag, those of embedded structs included.
func Cells(view any, tag string) (labels, texts []string) {
	value := reflect.ValueOf(view)
	for _, field := range reflect.VisibleFields(value.Type()) {
		label, tagged := field.Tag.Lookup(tag)
		if !tagged {
			continue
		}
		cell := value.FieldByIndex(field.Index)
		text := ""
		if !cell.IsZero() || !strings.Contains(field.Tag.Get("json"), ",omit") {
			text = CellText(cell)
		}
		labels, texts = append(labels, label), append(texts, text)
	}
	return labels, texts
}

// CellText returns a value's text: a list separated by commas, a map as its values and keys.
func CellText(value reflect.Value) string {
	if at, ok := value.Interface().(time.Time); ok {
		return FormatTime(at)
	}
	var texts []string
	switch value.Kind() {
	case reflect.Pointer:
		return CellText(value.Elem())
	case reflect.Slice:
		for i := range value.Len() {
			texts = append(texts, CellText(value.Index(i)))
		}
	case reflect.Map:
		for iter := value.MapRange(); iter.Next(); {
			texts = append(texts, CellText(iter.Value())+" "+CellText(iter.Key()))
		}
		slices.Sort(texts)
	default:
		return fmt.Sprint(value.Interface())
	}
	return JoinComma(texts)
}

// WriteJSON writes a value as an indented document.
func WriteJSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// NonNil returns a list that is [] in JSON if it is empty.
func NonNil(texts []string) []string { return append([]string{}, texts...) }

// MapAll returns the result of change for each item. A result without items is [] in JSON.
func MapAll[T, V any](items []T, change func(T) V) []V {
	changed := []V{}
	for _, item := range items {
		changed = append(changed, change(item))
	}
	return changed
}

// ErrUsage marks errors of the command line or of a setting.
var ErrUsage = errors.New("usage")

// UsageError returns an error that ends the tool with ExitUsage.
func UsageError(format string, values ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrUsage}, values...)...)
}
