package gatewayctl

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"mobilegateway/internal/local/file"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

type exportCommand struct {
	merchantArgument
	dayRange
	kindFlag
	Format string `enum:"csv,json,ndjson" default:"csv" help:"csv; json: an array; ndjson: one object per line."`
	Output string `placeholder:"FILE" predictor:"file" help:"Write to a file; the same command continues it."`
	Cursor string `placeholder:"CURSOR" help:"Without --output: continue at the cursor that was printed."`
}

var csvColumns = []string{"kind", "id", "transaction_id", "created_at", "final_at", "state", "status", "amount",
	"currency", "country", "operator", "channel", "client_correlator", "reference_code", "operator_reference",
	"upstream_key", "ever_unknown", "conflicts"}

// exportPosition is the position of an export: the pages before Cursor ("<day>/<the store's cursor>") are written, in
// Bytes bytes. Command identifies the export.
type exportPosition struct {
	Command string `json:"command"`
	Cursor  string `json:"cursor"`
	Bytes   int64  `json:"bytes"`
}

// Run writes the transactions in the order of creation, a page at a time, in constant memory. It writes only whole
// pages, so that a continued export has each transaction once.
func (c *exportCommand) Run(s *session) error {
	from, to, err := c.times().bounds()
	if err != nil {
		return err
	}
	if c.Output != "" && c.Cursor != "" {
		return usageError("--cursor does not go with --output: the file %s has its own cursor", c.cursorFile())
	}
	p, err := s.findMerchant(c.Name)
	if err != nil {
		return err
	}
	run := &exportRun{exportCommand: c, session: s, output: s.Stdout, position: exportPosition{Cursor: c.Cursor}}
	run.position.Command = run.description(p)
	if c.Output != "" {
		if err := run.openOutput(); err != nil {
			return err
		}
	}
	err = run.writePages(p.ID, from, to)
	if run.file != nil {
		err = errors.Join(err, run.file.Close())
	}
	if errors.Is(err, errUsage) {
		return err // an invalid cursor: nothing was written
	}
	if err != nil && c.Output == "" && run.pageWritten {
		fmt.Fprintf(s.Stderr, "Continue with --cursor %s\n", run.position.Cursor)
	}
	if err == nil && c.Output != "" {
		err = os.Remove(c.cursorFile())
	}
	fmt.Fprintf(s.Stderr, "%s written.\n", plural(run.written, "transaction"))
	return err
}

// The formats with special cases.
const (
	formatCSV  = "csv"
	formatJSON = "json"
)

// description identifies the export in its cursor file.
func (c *exportCommand) description(p *merchant.Profile) string {
	format := c.Format
	if format == formatJSON {
		format = "json array" // older cursor files name one object per line "json"
	}
	from, to := c.From.Format(time.DateOnly), c.To.Format(time.DateOnly)
	return strings.Join([]string{p.ID, from, to, format, c.Kind}, " ")
}

func (c *exportCommand) cursorFile() string { return c.Output + ".cursor" }

type exportRun struct {
	*exportCommand
	*session
	output      io.Writer
	file        *os.File // the output if it is a file
	position    exportPosition
	written     int  // transactions
	pageWritten bool // a page was written
}

// openOutput opens a new file, or one to continue, truncated to its last whole page.
func (x *exportRun) openOutput() error {
	text, err := os.ReadFile(x.cursorFile())
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(x.Output); err == nil {
			return usageError("%s exists and is not a resumable export: use another name, or delete it", x.Output)
		}
		text, err = json.Marshal(x.position)
	}
	if err != nil {
		return err
	}
	var found exportPosition
	if json.Unmarshal(text, &found) != nil || found.Command != x.position.Command {
		return usageError("%s is the cursor of another export: choose another --output", x.cursorFile())
	}
	x.position = found
	if x.file, err = os.OpenFile(x.Output, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return err
	}
	x.output = x.file
	if err = x.file.Truncate(found.Bytes); err == nil {
		err = x.savePosition()
	}
	if err != nil {
		_ = x.file.Close() // the first error is the cause
	}
	return err
}

// savePosition replaces the cursor file atomically.
func (x *exportRun) savePosition() error { return file.ReplaceJSON(x.cursorFile(), x.position) }

// writePages writes the remaining pages and closes a JSON array, also after an interrupt: every output can be parsed.
func (x *exportRun) writePages(merchantID string, from, to time.Time) error {
	from, cursor, err := x.startingPoint(from, to)
	if err != nil {
		return err
	}
	for p, failed := range x.pagesBetween(merchantID, from, to, cursor) {
		if err = failed; err == nil {
			err = x.writePage(p)
		}
		if err != nil {
			break
		}
	}
	if x.Format == formatJSON && (err == nil || x.pageWritten || x.Output != "") {
		err = errors.Join(err, x.closeArray())
	}
	return err
}

// startingPoint returns the day and the store's cursor of the position. A position after the last day is only valid in
// a file, whose export ended between its last page and its end.
func (x *exportRun) startingPoint(from, to time.Time) (first time.Time, cursor string, err error) {
	if x.position.Cursor == "" {
		return from, "", nil
	}
	text, cursor, whole := strings.Cut(x.position.Cursor, "/")
	first, err = time.Parse(time.DateOnly, text)
	if err != nil || !whole || first.Before(from) || !first.Before(to) && x.Output == "" {
		return first, "", usageError("the cursor %q is not one of this export: repeat its range, kind and format",
			x.position.Cursor)
	}
	return first, cursor, nil
}

// writePage writes a page, and then the position after it.
func (x *exportRun) writePage(p entryPage) error {
	var text bytes.Buffer
	rows := csv.NewWriter(&text)
	if x.position.Cursor == "" && x.Format == formatCSV {
		_ = rows.Write(csvColumns) // a Buffer never fails
	}
	for _, e := range p.entries {
		if !x.matches(e) || e.Kind == ledger.Reference {
			continue
		}
		x.written++
		if x.Format == formatCSV {
			_ = rows.Write(csvRow(entryViewOf(e)))
			continue
		}
		if err := x.writeJSONObject(&text, entryViewOf(e)); err != nil {
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

// csvRow is a transaction as a row. A text that a spreadsheet would run as a formula gets an apostrophe.
func csvRow(v entryView) []string {
	row := []string{string(v.Kind), v.ID, v.PaymentID, formatTime(v.CreatedAt), formatTime(v.FinalAt), string(v.State),
		string(v.Status), v.Amount, v.Currency, v.Country, v.Operator, v.Channel, v.Correlator, v.ReferenceCode,
		v.OperatorReference, v.UpstreamKey, strconv.FormatBool(v.EverUnknown), strconv.Itoa(v.Conflicts)}
	for i, cell := range row {
		if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
			row[i] = "'" + cell
		}
	}
	return row
}
