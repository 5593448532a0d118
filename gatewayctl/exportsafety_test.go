package gatewayctl

import (
	"encoding/csv"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// A merchant's text empties no other column on the standard output: each text is masked by itself, as the file has it.
func TestExportMasksEachTextByItself(t *testing.T) {
	d, shop := newShopTool(t)
	const correlator = "x://y?"
	d.addUnknownCharge(shop, correlator)
	line := "export ShopA --since 2026-03-01 --to 2026-03-01 --format "
	columns := func(name, text string) []string {
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(rows) != 2 || len(rows[1]) != len(csvColumns) {
			t.Fatalf("%s: %v in %q", name, err, text)
		}
		return rows[1]
	}
	_, out, _ := d.run(line + "csv")
	file := filepath.Join(t.TempDir(), "out")
	d.expectExit(line+"csv --output "+file, ExitDone, "")
	want := columns("the file", readFile(t, file))
	checkEqual(t, "the file's correlator", want[slices.Index(csvColumns, "client_correlator")], correlator)
	want[slices.Index(csvColumns, "client_correlator")] = correlator + "***"
	checkEqual(t, "the row on the standard output", columns("the output", out), want)
	for _, format := range []string{"json", "ndjson"} {
		if _, out, _ := d.run(line + format); len(exportedIDs(t, format, out)) != 1 || !strings.Contains(out, "=1+1") {
			t.Errorf("%s: %s", format, out)
		}
	}
}

// spreadsheetCells splits a CSV text as a spreadsheet of a locale does. Quotes count only at the start of a cell, and
// one behind the closing quote belongs to the cell.
func spreadsheetCells(text string, separator rune) (cells []string) {
	var cell strings.Builder
	isStart, isQuoted := true, false
	for _, char := range text + "\n" {
		switch {
		case char == '"' && isStart:
			isStart, isQuoted = false, true
			continue
		case char == '"' && isQuoted:
			isQuoted = false
			continue
		case !isQuoted && (char == separator || char == '\n' || char == '\r'):
			cells = append(cells, cell.String())
			cell.Reset()
			isStart = true
			continue
		}
		isStart = false
		cell.WriteRune(char)
	}
	return cells
}

// No text of a merchant becomes a formula in a spreadsheet, with each separator that a locale may have.
func TestExportHasNoFormula(t *testing.T) {
	formula := regexp.MustCompile(`^[\s\p{Z}\p{C}"]*[-=+@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]`)
	for _, text := range []string{
		"=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "\x00=1", "  =1", "\u00a0=1", "\u3000=1", "\ufeff=1",
		"\uff1d1", "\uff0b1", "\uff0d1", "\uff201", "a;=1", "a; =1", "a;;=1;+2;-3;@4", "a\t=1", "a\t\t=1",
		"a,=1", "a\n=1",
		"a\r\n=1", "a;\uff1d1", `a;"=1"`, `"=1"`, `";=1`, `a,"";"";=1`, "a\";\"\n;\t=1", "\ta", "\na",
	} {
		view := entryView{Kind: ledger.Charge, Correlator: text, ReferenceCode: "r"}
		var written strings.Builder
		rows := csv.NewWriter(&written)
		_ = rows.Write(csvRow(view)) // a Builder never fails
		rows.Flush()
		for _, separator := range ",;\t" {
			for _, cell := range spreadsheetCells(written.String(), separator) {
				if formula.MatchString(cell) {
					t.Errorf("%q separated by %q has the formula %q in %q", text, separator, cell, written.String())
				}
			}
		}
	}
	for _, text := range []string{"c-1", "2026-03-01T12:00:00Z", "a=b", "a; b-c", "tel:+2250707", "x@y.example,z"} {
		row := csvRow(entryView{Correlator: text})
		if got := row[slices.Index(csvColumns, "client_correlator")]; got != text {
			t.Errorf("%q became %q, want it unchanged", text, got)
		}
	}
}

// An export writes to no file that another user planted, and believes no cursor but its own.
func TestExportUsesOnlyPrivateFiles(t *testing.T) {
	give := func(t *testing.T, mode fs.FileMode, owner int, name string) {
		if err := errors.Join(os.Chmod(name, mode), os.Chown(name, owner, -1)); err != nil {
			t.Skip(err) // only root may give a file away
		}
	}
	link := func(t *testing.T, name string) {
		target := name + ".target"
		if err := errors.Join(os.Rename(name, target), os.Symlink(target, name)); err != nil {
			t.Fatal(err)
		}
	}
	own, other := os.Geteuid(), os.Geteuid()+1
	for name, c := range map[string]struct {
		plant func(t *testing.T, file, cursor string)
		code  int
		text  string // on the standard error
	}{
		"the export's own files": {func(*testing.T, string, string) {}, ExitDone, "Resuming"},
		"a file that others may read": {func(t *testing.T, file, _ string) {
			give(t, 0o644, own, file)
		}, ExitUsage, "not a regular file of yours"},
		"a file of another user": {func(t *testing.T, file, _ string) {
			give(t, 0o600, other, file)
		}, ExitUsage, "not a regular file of yours"},
		"a link":         {func(t *testing.T, file, _ string) { link(t, file) }, ExitUsage, "symbolic link"},
		"a shorter file": {func(t *testing.T, file, _ string) { writeFile(t, file, "kind") }, ExitUsage, "shorter"},
		"no file":        {func(t *testing.T, file, _ string) { _ = os.Remove(file) }, ExitUsage, "--overwrite"},
		"a cursor of another user": {func(t *testing.T, _, cursor string) {
			give(t, 0o600, other, cursor)
		}, ExitUsage, "not a resumable export"},
		"a cursor of another user, and no file": {func(t *testing.T, file, cursor string) {
			give(t, 0o600, other, cursor)
			_ = os.Remove(file)
		}, ExitDone, "cursor is ignored"},
		"a cursor that others may write, and no file": {func(t *testing.T, file, cursor string) {
			give(t, 0o666, own, cursor)
			_ = os.Remove(file)
		}, ExitDone, "cursor is ignored"},
		"a link to a cursor, and no file": {func(t *testing.T, file, cursor string) {
			link(t, cursor)
			_ = os.Remove(file)
		}, ExitDone, "cursor is ignored"},
		"a link to a missing file, without a cursor": {func(t *testing.T, file, cursor string) {
			if err := errors.Join(os.Remove(cursor), os.Remove(file), os.Symlink(file+".target", file)); err != nil {
				t.Fatal(err)
			}
		}, ExitUsage, "not a resumable export"},
	} {
		t.Run(name, func(t *testing.T) {
			d, shop := newShopTool(t)
			for i := range pageSize + 1 {
				d.addDeliveredPayment(shop, i, d.now.Add(time.Duration(i)*time.Second))
			}
			file := filepath.Join(t.TempDir(), "out")
			line := "export ShopA --since 2026-03-01 --to 2026-03-01 --output " + file
			d.failEveryRead(2)
			d.expectExit(line, ExitFailed, "injected")
			d.ledger.InjectFaults(nil)
			c.plant(t, file, file+".cursor")
			before, _ := os.ReadFile(file)
			d.expectExit(line, c.code, c.text)
			if c.code == ExitDone {
				checkEqual(t, "rows", len(exportedIDs(t, formatCSV, readFile(t, file))), pageSize+1)
			} else if after, _ := os.ReadFile(file); string(after) != string(before) {
				t.Errorf("a refused export wrote %q", after)
			}
			d.expectExit(line+" --overwrite", ExitDone, strconv.Itoa(pageSize+1)+" transactions")
			info, err := os.Lstat(file)
			if err != nil || info.Mode() != 0o600 {
				t.Errorf("the file has mode %v, want a regular one of 0600: %v", info.Mode(), err)
			}
		})
	}
}

// A row has the account, the payer's last digits as they are shown elsewhere, and the reason of a failure.
func TestExportedColumns(t *testing.T) {
	d, shop := newShopTool(t)
	e := d.addDeliveredPayment(shop, 1, d.now)
	e.Status, e.FailureReason, e.Conflicts = ledger.Failed, ledger.NotEnoughFunds, []ledger.Conflict{{}}
	d.ledger.Overwrite(e)
	_, out, _ := d.run("export ShopA --since today")
	want := "pay,ShopA_1,,2026-03-01T12:00:00Z,2026-03-01T12:00:01Z,done,failed,1000,XOF,CI,sandbox,ussd,,,,ShopA_1," +
		"false,1,ShopA,a1,********00,not-enough-funds\n"
	checkEqual(t, "the rows", out, strings.Join(csvColumns, ",")+"\n"+want)
}

// An export by finality says at its end what it left out, also if it was interrupted.
func TestExportByFinalitySaysWhatItLeavesOut(t *testing.T) {
	d, shop := newShopTool(t)
	for i := range pageSize + 1 {
		d.addDeliveredPayment(shop, i, d.now)
	}
	d.addUnknownCharge(shop, "c1")
	d.addUnknownCharge(shop, "c2")
	pending := d.addDeliveredPayment(shop, pageSize+1, d.now.Add(time.Hour))
	pending.Status, pending.FinalAt = ledger.Pending, time.Time{}
	d.ledger.Overwrite(pending)
	later := d.addDeliveredPayment(shop, pageSize+2, d.now)
	later.FinalAt = d.now.Add(day)
	d.ledger.Overwrite(later)
	lastLine := func(line, want string) {
		t.Helper()
		_, _, stderr := d.run(line)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		checkEqual(t, "the last line of "+line, lines[len(lines)-1], want)
	}
	const line = "export ShopA --since 2026-03-01 --to 2026-03-01"
	const saying = "Read, but left out because they are not final: "
	lastLine(line+" --by finality", saying+"1 pending, 2 unknown.")
	lastLine(line+" --by finality --kind charge", saying+"2 unknown.")
	lastLine(line+" --by finality --kind sms", saying+"none.")
	lastLine(line, strconv.Itoa(pageSize+5)+" transactions written.")
	file := filepath.Join(t.TempDir(), "out")
	d.failEveryRead(6)
	d.expectExit(line+" --by finality --output "+file, ExitFailed, "injected")
	d.ledger.InjectFaults(nil)
	lastLine(line+" --by finality --output "+file, saying+"1 pending, 2 unknown.")
	checkEqual(t, "rows", len(exportedIDs(t, formatCSV, readFile(t, file))), pageSize+1)
	d.failEveryRead(1) // before the first page
	d.expectExit(line+" --by finality --overwrite --output "+file, ExitFailed, "injected")
	d.ledger.InjectFaults(nil)
	lastLine(line+" --by finality --output "+file, saying+"1 pending, 2 unknown.")
}
