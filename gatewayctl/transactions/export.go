package transactions

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/internal/file"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// Export is the command export.
type Export struct {
	Merchant string `arg:"" optional:"" help:"Name or id of the merchant."`
	All      bool   `help:"Export all merchants, in the order in which they were added."`
	session.DayRange

	Since session.UTCDay `placeholder:"DAY" help:"From this UTC day, yesterday or today on; to the last whole day."`

	By        string `enum:"creation,finality" default:"creation" help:"The day of creation, or of the final status."`
	WithOpen  bool   `help:"With --by finality: also those created in the range that are pending or unknown."`
	Overwrite bool   `help:"Replace the file, and forget where an earlier export of it ended."`
	kindFlag
	Format string `enum:"csv,json,ndjson" default:"csv" help:"csv; json (an array); ndjson (lines). --json is ignored."`
	Output string `placeholder:"FILE" predictor:"file" help:"Write to a file; the same command continues it."`
	Cursor string `placeholder:"CURSOR" help:"Without --output: continue at the cursor that was printed."`

	Reconciled []string `sep:"none" placeholder:"FILE" predictor:"file" help:"Fees from files of reconcile --result."`
}

// Run writes the transactions in the order of creation, a page at a time, in constant memory. It writes only whole
// pages, so that a continued export has each transaction once.
func (c *Export) Run(s *session.Session) error {
	from, to, err := c.bounds(s.Now())
	if err != nil {
		return err
	}
	merchants, err := c.merchants(s)
	if err != nil {
		return err
	}
	run := &exportRun{Export: c, Session: s, output: s.Documents, position: exportPosition{
		Command: c.description(merchants), Cursor: c.Cursor, LeftOut: map[string]int{},
	}}
	if err := run.findings.open(c.Reconciled); err != nil {
		return errors.Join(err, run.findings.close())
	}
	if c.Output != "" {
		if err := run.openOutput(); err != nil {
			return errors.Join(err, run.findings.close())
		}
	}
	subject := "all merchants"
	if !c.All {
		subject = merchants[0].Name
	}
	err = s.Audited(actionExport, subject, func() (string, error) {
		err := run.writeMerchants(merchants, from, to)
		return fmt.Sprintf("%s to %s by %s, %s: %s", c.From.Format(time.DateOnly), c.To.Format(time.DateOnly), c.By,
			c.Format, output.Plural(run.written, "transaction")), err
	})
	err = errors.Join(err, run.findings.close())
	if run.file != nil {
		err = errors.Join(err, run.file.Close())
	}
	if errors.Is(err, output.ErrUsage) {
		return err // an invalid cursor: nothing was written
	}
	if err != nil && c.Output == "" && run.pageWritten {
		fmt.Fprintf(s.Stderr, "Continue with --cursor %s\n", run.position.Cursor)
	}
	if err == nil && c.Output != "" {
		err = os.Remove(c.cursorFile())
	}
	fmt.Fprintf(s.Stderr, "%s written.\n", output.Plural(run.written, "transaction"))
	if c.By == byFinality {
		leftOut := cmp.Or(output.CellText(reflect.ValueOf(run.position.LeftOut)), "none")
		fmt.Fprintf(s.Stderr, "Read, but left out because they are not final: %s.\n", leftOut)
	}
	return err
}

// Validate refuses flags that exclude each other.
func (c *Export) Validate() error {
	switch {
	case c.All == (c.Merchant != ""):
		return errors.New("name a merchant, or all of them with --all")
	case !c.Since.IsZero() && !c.From.IsZero():
		return errors.New("--since excludes --from: use one of them")
	case c.Output != "" && c.Cursor != "":
		return fmt.Errorf("--cursor does not go with --output: the file %s has its own cursor", c.cursorFile())
	case c.WithOpen && c.By != byFinality:
		return errors.New("--with-open is for --by finality: by creation all transactions are exported")
	case c.Overwrite && c.Output == "":
		return errors.New("--overwrite needs --output")
	}
	return nil
}

// bounds returns when the range begins and ends. Without --to, --since ends with the last whole day, so that a second
// export of the range has the same transactions; today ends with today.
func (c *Export) bounds(now time.Time) (from, to time.Time, err error) {
	today := now.UTC().Truncate(session.Day)
	if !c.Since.IsZero() {
		if c.From = c.Since; c.To.IsZero() && c.From.Equal(today) {
			c.To.Time = today
		} else if c.To.IsZero() {
			c.To.Time = today.Add(-session.Day)
		}
	}
	return c.Times().Bounds()
}

// merchants returns the merchants to export, in the order in which they were added: one that is added while an export
// is interrupted is not skipped.
func (c *Export) merchants(s *session.Session) ([]*merchant.Profile, error) {
	all, err := s.MerchantsNamed(c.Merchant)
	slices.SortFunc(all, func(a, b *merchant.Profile) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

// description identifies the export in its cursor file.
func (c *Export) description(merchants []*merchant.Profile) string {
	format := c.Format
	if format == formatJSON {
		format = "json array" // older cursor files name one object per line "json"
	}
	from, to := c.From.Format(time.DateOnly), c.To.Format(time.DateOnly)
	of, by := "all", ""
	if !c.All {
		of = merchants[0].ID
	}
	if c.By == byFinality {
		by = " by " + c.By
	}
	if c.WithOpen {
		by += " with open"
	}
	if len(c.Reconciled) > 0 {
		by += " reconciled by " + strings.Join(c.Reconciled, " ")
	}
	return strings.Join([]string{of, from, to, format, c.Kind}, " ") + by
}

func (c *Export) cursorFile() string { return c.Output + ".cursor" }

// ExportColumns returns the columns of a CSV export.
func ExportColumns() []string {
	return []string{"kind", "id", "transaction_id", "created_at", "final_at", "state", "status", "amount",
		"currency", "country", "operator", "channel", "client_correlator", "reference_code", "operator_reference",
		"upstream_key", "ever_unknown", "conflicts", "merchant", "account", "msisdn", "failure_reason", "platform",
		"platform_reference", "fee"}
}

// actionExport is the action of the audit record that each export leaves, also without --yes.
const actionExport = "export transactions"

const (
	formatCSV  = "csv"
	formatJSON = "json"
	byFinality = "finality"
)

// exportPosition is the position of an export: the pages before Cursor ("<day>/<the store's cursor>") are written, in
// Bytes bytes. With --all the cursor begins with "<merchant's id>/". Command identifies the export. LeftOut counts the
// transactions of these pages that an export by finality leaves out, by their state or status, or as unknowable.
type exportPosition struct {
	Command string         `json:"command"`
	Cursor  string         `json:"cursor"`
	Bytes   int64          `json:"bytes"`
	LeftOut map[string]int `json:"left_out,omitempty"`
}

type exportRun struct {
	*Export
	*session.Session
	output      io.Writer
	file        *os.File // the output if it is a file
	position    exportPosition
	written     int  // transactions
	pageWritten bool // a page was written
	findings    findings
}

// openOutput opens a new file, or one to continue, truncated to its last whole page. Also in a folder of other users,
// the rows end in a file that only this user can read, and a cursor of another user selects none of them.
func (x *exportRun) openOutput() error {
	if x.Overwrite {
		for _, name := range []string{x.cursorFile(), x.Output} { // in this order: a file without cursor is not resumed
			if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	flags := os.O_WRONLY | os.O_APPEND
	isResumed, err := x.readPosition()
	if err != nil {
		return err
	}
	if !isResumed {
		flags |= os.O_CREATE | os.O_EXCL
	}
	x.file, err = file.OpenPrivate(x.Output, flags)
	switch {
	case errors.Is(err, fs.ErrExist):
		return output.UsageError("%s exists and is not a resumable export: use another name, or --overwrite", x.Output)
	case err != nil:
		return output.UsageError("%w: use another name, or --overwrite", err)
	}
	x.output = x.file
	size, err := x.file.Seek(0, io.SeekEnd)
	if err == nil && size < x.position.Bytes {
		err = output.UsageError("%s is shorter than its cursor says: use another name, or --overwrite", x.Output)
	}
	if err == nil {
		err = cmp.Or(x.file.Truncate(x.position.Bytes), x.savePosition())
	}
	if err != nil {
		_ = x.file.Close() // the first error is the cause
	}
	return err
}

// readPosition reads the cursor file. A cursor that is not the user's own private file is ignored.
func (x *exportRun) readPosition() (isResumed bool, err error) {
	opened, err := file.OpenPrivate(x.cursorFile(), os.O_RDONLY)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(x.Stderr, "The cursor is ignored: %v.\n", err)
		}
		return false, nil
	}
	text, err := io.ReadAll(opened)
	if err = errors.Join(err, opened.Close()); err != nil {
		return false, err
	}
	found := exportPosition{LeftOut: map[string]int{}} // an older cursor has none
	if json.Unmarshal(text, &found) != nil || found.Command != x.position.Command {
		return false, output.UsageError("%s is the cursor of another export: choose another --output", x.cursorFile())
	}
	x.position = found
	fmt.Fprintf(x.Stderr, "Resuming %s behind its first %d bytes, by %s.\n", x.Output, found.Bytes, x.cursorFile())
	return true, nil
}

// savePosition replaces the cursor file atomically.
func (x *exportRun) savePosition() error { return file.ReplaceJSON(x.cursorFile(), x.position) }

// writeMerchants writes the remaining pages and closes a JSON array, also after an interrupt: every output can be
// parsed.
func (x *exportRun) writeMerchants(merchants []*merchant.Profile, from, to time.Time) error {
	if x.All && x.position.Cursor != "" {
		id, _, _ := strings.Cut(x.position.Cursor, "/")
		i := slices.IndexFunc(merchants, func(p *merchant.Profile) bool { return p.ID == id })
		if i < 0 {
			return x.wrongCursor()
		}
		merchants = merchants[i:]
	}
	var err error
	for i, p := range merchants {
		if err = x.writePages(p, from, to, i == 0); err != nil {
			break
		}
	}
	if errors.Is(err, output.ErrUsage) {
		return err
	}
	if x.Format == formatJSON && (err == nil || x.pageWritten || x.Output != "") {
		err = errors.Join(err, x.closeArray())
	}
	return err
}

// writePages writes a merchant's remaining pages. The first merchant begins at the position. By finality it reads the
// days before the range too: a transaction may become final long after its creation.
func (x *exportRun) writePages(p *merchant.Profile, from, to time.Time, isFirst bool) error {
	read, cursor := from, ""
	if x.By == byFinality {
		read = entries.FirstDay(p, from).UTC().Truncate(session.Day)
	}
	if isFirst && x.position.Cursor != "" {
		var err error
		read, cursor, err = x.startingPoint(read, to)
		if err != nil {
			return err
		}
	}
	before := x.written
	for page, err := range entries.Pages(x.Session, p, read, to, cursor) {
		if err == nil {
			page.Entries = slices.DeleteFunc(page.Entries, func(e *ledger.Entry) bool {
				return !x.selects(e, from, to)
			})
			err = x.writePage(p, page)
		}
		if err != nil {
			return err
		}
	}
	if x.All {
		fmt.Fprintf(x.Stderr, "%s: %s\n", p.Name, output.Plural(x.written-before, "transaction"))
	}
	return nil
}

// selects reports whether a transaction is exported, and counts one that is not final at the end of the range.
func (x *exportRun) selects(e *ledger.Entry, from, to time.Time) bool {
	isWanted, at := x.matches(e) && e.Kind != ledger.Reference, BecameFinal(e)
	if !isWanted || x.By != byFinality {
		return isWanted
	}
	if at.IsZero() && x.WithOpen && isOpen(e) && !e.CreatedAt.Before(from) && e.CreatedAt.Before(to) {
		return true
	}
	if at.IsZero() {
		ofDone := map[ledger.State]ledger.Status{ledger.Done: e.Status}
		label := cmp.Or(string(ofDone[e.State]), string(e.State))
		if e.Unknowable() { // nothing lists it any more
			label = ledger.ManuallyUnknowable
		}
		x.position.LeftOut[label]++
	}
	return !at.Before(from) && at.Before(to)
}

// startingPoint returns the day and the store's cursor of the position. A position after the last day is only valid in
// a file, whose export ended between its last page and its end, or before the next merchant.
func (x *exportRun) startingPoint(from, to time.Time) (first time.Time, cursor string, err error) {
	position := x.position.Cursor
	if x.All {
		_, position, _ = strings.Cut(position, "/")
	}
	text, cursor, whole := strings.Cut(position, "/")
	first, err = time.Parse(time.DateOnly, text)
	if err != nil || !whole || first.Before(from) || !first.Before(to) && x.Output == "" && !x.All {
		return first, "", x.wrongCursor()
	}
	return first, cursor, nil
}

// isOpen reports whether a transaction is pending or unknown: one that was released is certainly not applied.
func isOpen(e *ledger.Entry) bool { return e.State != ledger.Released && !e.Unknowable() }

func (x *exportRun) wrongCursor() error {
	return output.UsageError("the cursor %q is not one of this export: repeat its range, kind and format",
		x.position.Cursor)
}

// BecameFinal returns when a transaction became final, zero if it has not. A later write never moves it, so that each
// transaction is exported on one day. One that was released is not final: the same request may come again.
func BecameFinal(e *ledger.Entry) time.Time {
	outcome := map[ledger.State]string{ledger.Done: ledger.CallSucceeded, ledger.Refused: ledger.CallRefused}[e.State]
	switch {
	case !e.FinalAt.IsZero():
		return e.FinalAt
	case outcome == "" || e.State == ledger.Done && e.Kind != ledger.Charge:
		return time.Time{}
	case !e.Manual.At.IsZero():
		return e.Manual.At
	}
	for _, a := range e.Call.Attempts {
		if a.Outcome == outcome {
			return a.At.Add(time.Duration(a.Millis) * time.Millisecond)
		}
	}
	if queued := slices.Concat(e.Outbox.Delivered, e.Outbox.Waiting); len(queued) > 0 {
		return queued[0].At // a charge's only notification: the write that recorded the outcome queued it
	}
	return e.UpdatedAt
}
