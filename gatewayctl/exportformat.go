package gatewayctl

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/merchant"
)

// writePage writes a page of a merchant, and then the position after it.
func (x *exportRun) writePage(of *merchant.Profile, p entryPage) error {
	var text bytes.Buffer
	rows := csv.NewWriter(&text)
	if x.position.Cursor == "" && x.Format == formatCSV {
		_ = rows.Write(csvColumns) // a Buffer never fails
	}
	for _, e := range p.entries {
		x.written++
		view := exportedView(e)
		if x.file == nil {
			maskTexts(&view)
		}
		if x.Format == formatCSV {
			_ = rows.Write(csvRow(view))
			continue
		}
		if err := x.writeJSONObject(&text, view); err != nil {
			return err
		}
	}
	rows.Flush()
	n, err := x.output.Write(text.Bytes())
	if err != nil {
		return err
	}
	x.pageWritten = true
	x.position.Bytes += int64(n)
	x.position.Cursor = p.day.Format(time.DateOnly) + "/" + p.next
	if p.next == "" {
		x.position.Cursor = p.day.Add(day).Format(time.DateOnly) + "/"
	}
	if x.All {
		x.position.Cursor = of.ID + "/" + x.position.Cursor
	}
	if x.Output == "" {
		return nil
	}
	return x.savePosition()
}

// writeJSONObject writes a transaction as a line, or as an element of the array, which the first element opens.
func (x *exportRun) writeJSONObject(text *bytes.Buffer, v entryView) error {
	document, err := json.Marshal(v)
	switch {
	case x.Format != formatJSON:
		document = append(document, '\n')
	case x.position.Bytes == 0 && text.Len() == 0:
		text.WriteString("[\n")
	default:
		text.WriteString(",\n")
	}
	text.Write(document)
	return err
}

// closeArray writes the end of the array. The position does not include it: a continued export truncates it again.
func (x *exportRun) closeArray() error {
	if x.file != nil {
		if err := x.file.Truncate(x.position.Bytes); err != nil {
			return err
		}
	}
	end := "\n]\n"
	if x.position.Bytes == 0 {
		end = "[]\n"
	}
	_, err := io.WriteString(x.output, end)
	return err
}

// formulaStart matches each sign of a text at which a spreadsheet may begin a formula: at the start of a cell, behind
// spaces, invisible characters and quotes. The sign may be full-width. A cell starts behind the separator of any
// locale: a spreadsheet that splits at semicolons takes no notice of our quotes.
var formulaStart = regexp.MustCompile(
	`(^|[;,\t\r\n])([\p{Z}\p{C}"]*)([-=+@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}])|(^[\t\r\n\x00])`)

// csvRow is a transaction as a row: the fields of its JSON form that are columns. An apostrophe makes a text of what a
// spreadsheet would run as a formula.
func csvRow(v entryView) []string {
	row := make([]string, len(csvColumns))
	labels, texts := viewCells(v, "json")
	for i, label := range labels {
		label, _, _ = strings.Cut(label, ",")
		if column := slices.Index(csvColumns, label); column >= 0 {
			row[column] = formulaStart.ReplaceAllString(texts[i], "$1$2'$3$4")
		}
	}
	return row
}
