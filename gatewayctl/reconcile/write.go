package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/reconcile/listing"
	"mobilegateway/gatewayctl/reconcile/result"
	"mobilegateway/gatewayctl/reconcile/runs"
)

// outcome is a result whose rows are sorted in the work folder.
type outcome struct {
	view      result.View
	collector *collector
}

func (r *reconciliation) header() result.View {
	return result.View{
		Platform: r.Platform, Account: r.Account, Day: r.Day.Format(time.DateOnly), From: r.day.begin, To: r.day.end,
		Statements: r.summaries(), Compared: r.work.Ledger.Compared,
	}
}

func (o *outcome) summary() result.Summary {
	return result.Summary{Counts: o.collector.counts, Totals: o.collector.totals.views()}
}

// differences is the number of rows that are not equal.
func (o *outcome) differences() int { return o.rowCount() - o.collector.counts[result.Equal] }

func (o *outcome) rowCount() int {
	count := 0
	for _, n := range o.collector.counts {
		count += n
	}
	return count
}

// write writes the result. The file of --result comes first: if it fails, the standard output has nothing.
func (r *reconciliation) write(found *outcome) error {
	sorted := &resultRows{sorter: found.collector.rows}
	if r.Result != "" {
		if err := result.Write(r.Result, found.view, found.summary(), sorted.all); err != nil {
			return err
		}
	}
	var err error
	switch {
	case r.CSV:
		err = listing.WriteCSV(r.Documents, sorted.differences)
	case r.JSON:
		err = listing.WriteJSON(r.Documents, struct {
			result.View
			result.Summary
		}{found.view, found.summary()}, "differences", sorted.differences)
	default:
		err = r.writeTable(sorted)
	}
	if err != nil {
		return err
	}
	return r.writeTotals(found)
}

// resultRows are the sorted rows, which may be read several times.
type resultRows struct{ sorter *runs.Sorter }

// all calls f with each row.
func (s *resultRows) all(f func(result.Row) error) error { return s.each(true, f) }

// differences calls f with each row that is not equal.
func (s *resultRows) differences(f func(result.Row) error) error { return s.each(false, f) }

// each calls f with each row, without the equal ones unless they are wanted.
func (s *resultRows) each(withEqual bool, f func(result.Row) error) error {
	for record, err := range s.sorter.Sorted() {
		if err != nil {
			return err
		}
		texts := runs.Unpack(record)
		var row result.Row
		if err := json.Unmarshal([]byte(texts[len(texts)-1]), &row); err != nil {
			return err
		}
		if row.Class == result.Equal && !withEqual {
			return nil // the last class
		}
		if err := f(row); err != nil {
			return err
		}
	}
	return nil
}

// writeTotals writes what people need beside the rows. A table has it on the standard output.
func (r *reconciliation) writeTotals(found *outcome) error {
	to := r.Stderr
	if !r.CSV && !r.JSON {
		to = r.Stdout
	}
	for _, s := range found.view.Statements {
		fmt.Fprintln(r.Stderr, s.Describe()+".")
	}
	summary := found.summary()
	if r.JSON && !r.CSV {
		return nil
	}
	if err := output.ListRows(summary.Totals).Write(to, ""); err != nil {
		return err
	}
	_, err := fmt.Fprintf(to, "%s %s: %s.\n", r.subject(), found.view.Day, describe(summary.Counts))
	return err
}

// tablePage is the number of differences that a table aligns together.
const tablePage = 1000

// writeTable writes the differences as tables of a page each.
func (r *reconciliation) writeTable(rows *resultRows) error {
	var page []result.Row
	flush := func() error {
		if len(page) == 0 {
			return nil
		}
		err := output.ListRows(page).Write(r.Stdout, "")
		page = page[:0]
		return errors.Join(err, writeLine(r.Stdout))
	}
	err := rows.differences(func(row result.Row) error {
		if page = append(page, row); len(page) < tablePage {
			return nil
		}
		return flush()
	})
	return errors.Join(err, flush())
}

func writeLine(to io.Writer) error {
	_, err := fmt.Fprintln(to)
	return err
}
