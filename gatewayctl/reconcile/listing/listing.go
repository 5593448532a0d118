// Package listing writes results with long lists, row by row: a JSON document, or CSV.
//
// It keeps one row in memory. Its invariant: no query of a URL is written, and no cell of CSV runs as a formula.
package listing

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/shared/spreadsheet"
)

// Each calls yield with each row. It returns yield's error at once.
type Each[T any] func(yield func(T) error) error

// WriteJSON writes one document: the fields of head, which has at least one, and then the rows as a list with a name.
func WriteJSON[T any](to io.Writer, head any, name string, rows Each[T]) error {
	text, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return err
	}
	const end = "\n}"
	_, err = io.WriteString(to, strings.TrimSuffix(string(text), end)+",\n  \""+name+"\": [")
	separator := "\n    "
	err = errors.Join(err, rows(func(row T) error {
		transactions.MaskTexts(&row)
		document, err := json.MarshalIndent(row, "    ", "  ")
		if err != nil {
			return err
		}
		_, err = io.WriteString(to, separator+string(document))
		separator = ",\n    "
		return err
	}))
	closing := "]\n}\n"
	if separator[0] == ',' {
		closing = "\n  " + closing
	}
	_, endErr := io.WriteString(to, closing)
	return errors.Join(err, endErr)
}

// Columns returns the columns of rows as CSV: the names of their fields in JSON.
func Columns[T any]() []string {
	var none T
	labels, _ := output.Cells(none, "json")
	for i, label := range labels {
		labels[i], _, _ = strings.Cut(label, ",")
	}
	return labels
}

// WriteCSV writes rows as CSV, with a heading.
func WriteCSV[T any](to io.Writer, rows Each[T]) error {
	write := func(cells []string) error {
		var text strings.Builder
		writer := csv.NewWriter(&text)
		_ = writer.Write(cells) // a Builder never fails
		writer.Flush()
		_, err := io.WriteString(to, text.String())
		return err
	}
	if err := write(Columns[T]()); err != nil {
		return err
	}
	return rows(func(row T) error {
		transactions.MaskTexts(&row)
		_, texts := output.Cells(row, "json")
		for i, text := range texts {
			texts[i] = spreadsheet.EscapeFormulas(text)
		}
		return write(texts)
	})
}
