package transactions

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/spreadsheet"
)

// writePage writes a page of a merchant, and then the position after it.
func (x *exportRun) writePage(of *merchant.Profile, p entries.Page) error {
	var text bytes.Buffer
	rows := csv.NewWriter(&text)
	if x.position.Cursor == "" && x.Format == formatCSV {
		_ = rows.Write(ExportColumns()) // a Buffer never fails
	}
	for _, e := range p.Entries {
		x.written++
		view, err := x.findings.viewOf(e)
		if err != nil {
			return err
		}
		if x.file == nil {
			MaskTexts(&view)
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
	x.position.Cursor = p.Day.Format(time.DateOnly) + "/" + p.Next
	if p.Next == "" {
		x.position.Cursor = p.Day.Add(session.Day).Format(time.DateOnly) + "/"
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
func (x *exportRun) writeJSONObject(text *bytes.Buffer, v exportView) error {
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

// csvRow is a transaction as a row: the fields of its JSON form that are columns. An apostrophe makes a text of what a
// spreadsheet would run as a formula.
func csvRow(v exportView) []string {
	columns := ExportColumns()
	row := make([]string, len(columns))
	labels, texts := output.Cells(v, "json")
	for i, label := range labels {
		label, _, _ = strings.Cut(label, ",")
		if column := slices.Index(columns, label); column >= 0 {
			row[column] = spreadsheet.EscapeFormulas(texts[i])
		}
	}
	return row
}

// MaskTexts masks the queries in each text of a struct, which view points to.
func MaskTexts(view any) {
	value := reflect.ValueOf(view).Elem()
	for _, declared := range reflect.VisibleFields(value.Type()) {
		if field := value.FieldByIndex(declared.Index); field.Kind() == reflect.String {
			field.SetString(output.MaskQueries(field.String()))
		}
	}
}
