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

	"mobilegateway/shared/ledger"
)

type exportCommand struct {
	Merchant string `required:"" placeholder:"NAME" help:"The merchant's name or id."`
	From     string `required:"" placeholder:"DAY" help:"The first UTC day of creation."`
	To       string `required:"" placeholder:"DAY" help:"The last UTC day of creation."`
	Format   string `enum:"csv,json,ndjson" default:"csv" help:"csv; json: an array; or ndjson: one object a line."`
	Kind     string `enum:"all,charge,pay,sms" default:"all" help:"all, charge, pay or sms."`
	Output   string `placeholder:"FILE" help:"Write to a file; the same command continues it after an interrupt, by FILE.cursor."`
	Cursor   string `placeholder:"CURSOR" help:"Without --output: continue where an export ended, by the cursor that it told."`
}

// csvColumns are the export's, in their order.
var csvColumns = []string{"kind", "id", "transaction_id", "created_at", "final_at", "state", "status", "amount", "currency", "country", "operator",
	"channel", "client_correlator", "reference_code", "operator_reference", "upstream_key", "ever_unknown", "conflicts"}

// exportPosition is where an export stands: the pages before Cursor ("<day>/<the store's cursor>") are written, in Bytes.
// Command says which export it is of.
type exportPosition struct {
	Command string `json:"command"`
	Cursor  string `json:"cursor"`
	Bytes   int64  `json:"bytes"`
}

// Run writes the transactions in the order of creation, a page at a time: memory does not grow with their number, and
// what is written is always whole pages, so that a continued export has each transaction once.
func (c *exportCommand) Run(s *session) error {
	from, to, err := parseDays(c.From, c.To)
	if err != nil {
		return err
	}
	if c.Output != "" && c.Cursor != "" {
		return usageError("--output has its own cursor")
	}
	p, err := s.findMerchant(c.Merchant)
	if err != nil {
		return err
	}
	run := &exportRun{exportCommand: c, session: s, output: s.Stdout, position: exportPosition{Cursor: c.Cursor}}
	run.position.Command = fmt.Sprint(p.ID, " ", c.From, " ", c.To, " ", c.formatName(), " ", c.Kind)
	var file *os.File
	if c.Output != "" {
		if file, err = run.openOutput(); err != nil {
			return err
		}
	}
	err = run.writePages(p.ID, from, to)
	if file != nil {
		err = errors.Join(err, file.Close())
	}
	if errors.Is(err, errUsage) {
		return err // of a cursor that is none: nothing was begun
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

// The formats.
const (
	formatCSV  = "csv"
	formatJSON = "json"
)

// formatName is the format as a cursor file names it: "json" was one object a line there, which no array continues.
func (c *exportCommand) formatName() string {
	if c.Format == formatJSON {
		return "json array"
	}
	return c.Format
}

func (c *exportCommand) cursorFile() string { return c.Output + ".cursor" }

// exportRun is one run of an export.
type exportRun struct {
	*exportCommand
	*session
	output      io.Writer
	position    exportPosition
	written     int
	pageWritten bool // a page was written
}

// openOutput opens the file: a new one, or one to be continued, cut back to its last whole page.
func (x *exportRun) openOutput() (*os.File, error) {
	text, err := os.ReadFile(x.cursorFile())
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(x.Output); err == nil {
			return nil, usageError("%s is there already, and is not half an export", x.Output)
		}
		text, err = json.Marshal(x.position)
	}
	if err != nil {
		return nil, err
	}
	var found exportPosition
	if json.Unmarshal(text, &found) != nil || found.Command != x.position.Command {
		return nil, usageError("%s is of another export", x.cursorFile())
	}
	x.position = found
	file, err := os.OpenFile(x.Output, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	x.output = file
	if err = truncateAndSeek(file, found.Bytes); err == nil {
		err = x.savePosition()
	}
	if err != nil {
		_ = file.Close() // the error before it says more
	}
	return file, err
}

// truncateAndSeek cuts a file back to what is to stay, and goes on behind it.
func truncateAndSeek(file *os.File, to int64) error {
	if err := file.Truncate(to); err != nil {
		return err
	}
	_, err := file.Seek(to, io.SeekStart)
	return err
}

// savePosition stores the position, whole or not at all.
func (x *exportRun) savePosition() error {
	text, err := json.Marshal(x.position)
	if err != nil {
		return err
	}
	next := x.cursorFile() + ".new"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, x.cursorFile())
}

// writePages writes what is left, and closes the document: one that was interrupted too, so that whatever was written can be read.
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

// startingPoint finds the day and the store's cursor that the position is at. Past the last day there is nothing to continue, but
// in a file whose export was ended between its last page and its end.
func (x *exportRun) startingPoint(from, to time.Time) (first time.Time, cursor string, err error) {
	if x.position.Cursor == "" {
		return from, "", nil
	}
	text, cursor, whole := strings.Cut(x.position.Cursor, "/")
	first, err = parseDay(text)
	if err != nil || !whole || first.Before(from) || !first.Before(to) && x.Output == "" {
		return first, "", usageError("the cursor is not one of this export")
	}
	return first, cursor, nil
}

// writePage writes a page and then the position after it.
func (x *exportRun) writePage(p entryPage) error {
	var text bytes.Buffer
	rows := csv.NewWriter(&text)
	if x.position.Cursor == "" && x.Format == formatCSV {
		_ = rows.Write(csvColumns) // a buffer takes everything
	}
	for _, e := range p.entries {
		if x.Kind != "all" && x.Kind != string(e.Kind) || e.Kind == ledger.Reference {
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

// writeJSONObject writes a transaction as JSON: a line, or an element of the array, whose bracket comes with the first.
func (x *exportRun) writeJSONObject(text *bytes.Buffer, v entryView) error {
	if x.Format == formatJSON {
		mark := ",\n"
		if x.position.Bytes == 0 && text.Len() == 0 {
			mark = "[\n"
		}
		text.WriteString(mark)
	}
	document, err := json.Marshal(v)
	text.Write(document)
	if x.Format != formatJSON {
		text.WriteByte('\n')
	}
	return err
}

// closeArray ends the array. A file's end is no part of its position: what continues the export cuts it off again, as a page
// is that could not be written whole.
func (x *exportRun) closeArray() error {
	if file, ok := x.output.(*os.File); ok {
		if err := truncateAndSeek(file, x.position.Bytes); err != nil {
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

// csvRow is a transaction as a row. A text that a spreadsheet would take for a formula is marked as text.
func csvRow(v entryView) []string {
	row := []string{string(v.Kind), v.ID, v.PaymentID, formatTime(v.CreatedAt), formatTime(v.FinalAt), string(v.State), string(v.Status), v.Amount, v.Currency,
		v.Country, v.Operator, v.Channel, v.Correlator, v.ReferenceCode, v.OperatorReference, v.UpstreamKey,
		strconv.FormatBool(v.EverUnknown), strconv.Itoa(v.Conflicts)}
	for i, cell := range row {
		if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
			row[i] = "'" + cell
		}
	}
	return row
}
