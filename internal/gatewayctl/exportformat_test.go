package gatewayctl

import (
	"encoding/csv"
	"encoding/json"
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

	"mobilegateway/internal/storetest"
	"mobilegateway/shared/ledger"
)

// exportedIDs parses a whole export and returns the ids in its order.
func exportedIDs(t *testing.T, format, text string) []string {
	t.Helper()
	ids := []string{}
	switch format {
	case "csv":
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if row[1] != "id" {
				ids = append(ids, row[1])
			}
		}
	case "json":
		var views []entryView
		if err := json.Unmarshal([]byte(text), &views); err != nil || views == nil {
			t.Fatalf("not a JSON array: %v in %.200s", err, text)
		}
		for _, v := range views {
			ids = append(ids, v.ID)
		}
	default:
		for line := range strings.Lines(text) {
			var v entryView
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatalf("%v in the line %q", err, line)
			}
			ids = append(ids, v.ID)
		}
	}
	return ids
}

// failEveryRead makes every nth read of a day fail.
func (d *testTool) failEveryRead(n int) {
	calls := 0
	d.ledger.InjectFaults(func(c storetest.Call) storetest.Fault {
		if c.Operation != storetest.Day {
			return storetest.NoFault
		}
		if calls++; calls%n == 0 {
			return storetest.FailedBeforeApply
		}
		return storetest.NoFault
	})
}

func TestExportContinues(t *testing.T) {
	for _, format := range []string{"csv", "json", "ndjson"} {
		t.Run(format, func(t *testing.T) {
			d, shop := newShopTool(t)
			const count = 3*pageSize + 7
			for i := range count {
				d.addDeliveredPayment(shop, i, d.now.Add(time.Duration(i%3)*day).Add(time.Duration(i)*time.Second))
			}
			d.addUnknownCharge(shop, "=c1")
			line := "export ShopA --from 2026-03-01 --to 2026-03-03 --format " + format
			_, whole, _ := d.run(line)
			if ids := exportedIDs(t, format, whole); len(ids) != count+1 {
				t.Errorf("%d transactions", len(ids))
			}
			file := filepath.Join(t.TempDir(), "out")
			d.failEveryRead(3)
			d.expectExit(line+" --output "+file, ExitFailed, "injected")
			half := readFile(t, file)
			if ids := exportedIDs(t, format, half); len(ids) == 0 || len(ids) > count {
				t.Errorf("half of it: %d transactions", len(ids))
			}
			writeFile(t, file, half+"a torn page")
			d.expectExit("export ShopA --from 2026-03-01 --to 2026-03-02 --format "+format+" --output "+file,
				ExitUsage, "another export")
			for code := ExitFailed; code != ExitDone; {
				code, _, _ = d.run(line + " --output " + file)
			}
			if text := readFile(t, file); text != whole {
				t.Fatalf("%d bytes in pieces, %d whole", len(text), len(whole))
			}
			if format == "csv" && !strings.Contains(whole, ",'=c1,'=1+1,") {
				t.Error("a formula is not marked as text")
			}
			d.expectExit(line+" --output "+file, ExitUsage, "exists and is not a resumable export")
		})
	}
}

// Each part on the standard output is a document, and together they have each transaction once.
func TestExportPrintsItsCursor(t *testing.T) {
	for _, format := range []string{"csv", "json", "ndjson"} {
		t.Run(format, func(t *testing.T) {
			d, shop := newShopTool(t)
			for i := range 2*pageSize + 1 {
				d.addDeliveredPayment(shop, i, d.now.Add(time.Duration(i)*time.Second))
			}
			line := "export ShopA --from 2026-03-01 --to 2026-03-01 --format " + format
			_, whole, _ := d.run(line)
			d.failEveryRead(2)
			code, first, stderr := d.run(line)
			_, cursor, found := strings.Cut(stderr, "--cursor ")
			if code != ExitFailed || !found {
				t.Fatalf("exit %d, %s", code, stderr)
			}
			d.ledger.InjectFaults(nil)
			_, rest, _ := d.run(line + " --cursor " + strings.Fields(cursor)[0])
			parts := append(exportedIDs(t, format, first), exportedIDs(t, format, rest)...)
			if joinComma(parts) != joinComma(exportedIDs(t, format, whole)) {
				t.Errorf("%d transactions in parts", len(parts))
			}
			if format != "json" && first+rest != whole {
				t.Errorf("parts of %d and %d bytes differ from the whole of %d", len(first), len(rest), len(whole))
			}
		})
	}
}

func TestExportOfEmptyRange(t *testing.T) {
	d, _ := newShopTool(t)
	heading := strings.Join(csvColumns, ",") + "\n"
	for format, want := range map[string]string{"csv": heading, "json": "[]\n", "ndjson": ""} {
		line := "export ShopA --from 2026-03-01 --to 2026-03-02 --format " + format
		code, out, stderr := d.run(line)
		if code != ExitDone || out != want || !strings.Contains(stderr, "0 transactions written") {
			t.Errorf("%s: exit %d, %q, %s", format, code, out, stderr)
		}
		d.failEveryRead(1)
		if code, out, stderr := d.run(line); code != ExitFailed || out != "" || strings.Contains(stderr, "Continue") {
			t.Errorf("%s, not begun: exit %d, %q, %s", format, code, out, stderr)
		}
		d.ledger.InjectFaults(nil)
	}
}

func TestExportRefusesACursor(t *testing.T) {
	d := newTestTool(t)
	d.addDeliveredPayment(d.onboardShop(), 1, d.now)
	for _, cursor := range []string{"garbage", "2026-03-01", "2026-02-28/", "2026-03-02/", "2027-01-01/x", "/",
		"2026-3-1/"} {
		for _, format := range []string{"csv", "json"} {
			code, out, stderr := d.run("export ShopA --from 2026-03-01 --to 2026-03-01 --format " + format +
				" --cursor " + cursor)
			if code != ExitUsage || out != "" || !strings.Contains(stderr, "not one of this export") ||
				strings.Contains(stderr, "Continue") || strings.Contains(stderr, "written") {
				t.Errorf("%s: exit %d, %q, %s", cursor, code, out, stderr)
			}
		}
	}
}

// A resumed export whose last page was written only closes its document.
func TestExportResumedAfterLastPage(t *testing.T) {
	d := newTestTool(t)
	d.addDeliveredPayment(d.onboardShop(), 1, d.now)
	file := filepath.Join(t.TempDir(), "out")
	line := "export ShopA --from 2026-03-01 --to 2026-03-01 --format json --output " + file
	d.failEveryRead(1)
	d.expectExit(line, ExitFailed, "injected")
	d.ledger.InjectFaults(nil)
	var at exportPosition
	if err := json.Unmarshal([]byte(readFile(t, file+".cursor")), &at); err != nil {
		t.Fatal(err)
	}
	d.mustRun(line, nil)
	whole := readFile(t, file)
	pages := strings.TrimSuffix(whole, "\n]\n")
	at.Cursor, at.Bytes = "2026-03-02/", int64(len(pages))
	text, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file+".cursor", string(text))
	writeFile(t, file, pages)
	d.mustRun(line, nil)
	checkEqual(t, "the file of both runs", readFile(t, file), whole)
}

// TestExportOfAllMerchants interrupts an export of all merchants at each page: each transaction is exported once.
func TestExportOfAllMerchants(t *testing.T) {
	for _, format := range []string{"csv", "json", "ndjson"} {
		t.Run(format, func(t *testing.T) {
			d, first := newShopTool(t)
			d.now = d.now.Add(time.Hour)
			second := d.onboard("ShopB")
			for i := range pageSize + 3 {
				d.addDeliveredPayment(first, i, d.now.Add(time.Duration(i)*time.Second))
				d.addDeliveredPayment(second, i, d.now.Add(time.Duration(i%2)*day))
			}
			line := "export --all --from 2026-03-01 --to 2026-03-02 --format " + format
			_, whole, stderr := d.run(line)
			if ids := exportedIDs(t, format, whole); len(ids) != 2*(pageSize+3) {
				t.Errorf("%d transactions, want %d", len(ids), 2*(pageSize+3))
			}
			if !strings.Contains(stderr, "ShopB: 203 transactions") {
				t.Errorf("no line for each merchant in %q", stderr)
			}
			file := filepath.Join(t.TempDir(), "out")
			d.failEveryRead(2)
			for code := ExitFailed; code != ExitDone; {
				code, _, _ = d.run(line + " --output " + file)
			}
			if text := readFile(t, file); text != whole {
				t.Errorf("%d bytes in pieces, %d whole", len(text), len(whole))
			}
			d.failEveryRead(4)
			parts, cursor := []string{}, ""
			for code := ExitFailed; code != ExitDone; {
				var part string
				code, part, stderr = d.run(line + cursor)
				parts = append(parts, exportedIDs(t, format, part)...)
				if _, rest, found := strings.Cut(stderr, "--cursor "); found {
					cursor = " --cursor " + strings.Fields(rest)[0]
				}
			}
			if joinComma(parts) != joinComma(exportedIDs(t, format, whole)) {
				t.Errorf("%d transactions in parts, want those of the whole", len(parts))
			}
			d.expectExit(line+" --cursor unknown/2026-03-01/", ExitUsage, "not one of this export")
		})
	}
}

func TestExportByFinality(t *testing.T) {
	d, shop := newShopTool(t)
	late := d.addDeliveredPayment(shop, 1, d.now)
	late.FinalAt = d.now.Add(2 * day)
	d.ledger.Overwrite(late)
	d.addDeliveredPayment(shop, 2, d.now.Add(2*day))
	d.addUnknownCharge(shop, "c1")
	charge := d.mustReadEntry(d.addUnknownCharge(shop, "c2"))
	charge.State, charge.UpdatedAt = ledger.Done, d.now.Add(2*day)
	d.ledger.Overwrite(charge)
	d.now = d.now.Add(3 * day) // 4 March
	for line, want := range map[string]int{
		"export ShopA --since yesterday --by finality":                  3,
		"export ShopA --since yesterday":                                1,
		"export ShopA --since 2026-03-01":                               4,
		"export ShopA --since today":                                    0,
		"export ShopA --from 2026-03-01 --to 2026-03-02 --by finality":  0,
		"export ShopA --since 2026-03-01 --to 2026-03-01 --by creation": 3,
		"export --all --since 2026-03-02 --by finality --kind pay":      2,
		"export --all --from 2026-03-03 --to 2026-03-03 --kind charge":  0,
		"export --all --since 2026-03-03 --by finality --kind charge":   1,
		"export ShopA --from 2026-03-03 --to 2026-03-03 --by creation ": 1,
		"export ShopA --since 2026-03-01 --to 2026-03-04 --kind sms":    0,
		"export ShopA --since 2026-03-03 --to 2026-03-03 --by finality": 3,
		"export ShopA --from 2026-03-04 --to 2026-03-04 --by finality":  0,
		"export ShopA --from 2026-03-02 --to 2026-03-02 --by creation":  0,
		"export ShopA --from 2026-03-01 --to 2026-03-03 --by creation":  4,
		"export ShopA --from 2026-02-01 --to 2026-03-03 --by finality":  3,
	} {
		code, out, stderr := d.run(line + " --format ndjson")
		if ids := exportedIDs(t, "ndjson", out); code != ExitDone || len(ids) != want {
			t.Errorf("%s: exit %d, %d transactions, want %d; %s", line, code, len(ids), want, stderr)
		}
	}
}

// A write after an outcome does not move the day on which it was recorded: a transaction is exported on one day.
func TestExportedOnTheDayOfItsOutcome(t *testing.T) {
	d, shop := newShopTool(t)
	recorded, written := d.now.Add(2*day), d.now.Add(4*day)
	attempt := func(outcome string) []ledger.CallAttempt {
		return []ledger.CallAttempt{{At: d.now, Outcome: ledger.CallUnknown}, {
			At: recorded.Add(-time.Second), Millis: 1000, Outcome: outcome,
		}}
	}
	charge := func(state ledger.State, change func(e *ledger.Entry)) func(e *ledger.Entry) {
		return func(e *ledger.Entry) {
			e.State = state
			change(e)
		}
	}
	for name, change := range map[string]func(e *ledger.Entry){
		"a manual outcome, then the merchant's repeat": charge(ledger.Done, func(e *ledger.Entry) {
			e.Manual = ledger.ManualResolution{Outcome: ledger.ManuallyApplied, At: recorded}
			e.CallAttempts = []ledger.CallAttempt{{At: written, Outcome: ledger.CallSucceeded}}
		}),
		"a retry that succeeded, then the notification's attempts": charge(ledger.Done, func(e *ledger.Entry) {
			e.CallAttempts = attempt(ledger.CallSucceeded)
		}),
		"a refusal, then a conflict": charge(ledger.Refused, func(e *ledger.Entry) {
			e.CallAttempts = append(attempt(ledger.CallRefused), ledger.CallAttempt{
				At: written, Outcome: ledger.CallSucceeded,
			})
		}),
		"a late response, then the notification's attempts": charge(ledger.Done, func(e *ledger.Entry) {
			e.Outbox = []ledger.Notification{{ID: "w", Status: ledger.Successful, At: recorded, Attempts: 9}}
		}),
		"no later write": charge(ledger.Done, func(e *ledger.Entry) { e.UpdatedAt = recorded }),
	} {
		e := d.mustReadEntry(d.addUnknownCharge(shop, "c1"))
		e.UpdatedAt = written
		change(e)
		d.ledger.Overwrite(e)
		e = d.mustReadEntry(e.Key)
		checkEqual(t, name, becameFinal(e).Format(time.DateOnly), recorded.Format(time.DateOnly))
		checkEqual(t, name+": its final_at", exportedView(e).FinalAt, becameFinal(e))
	}
	// The same request of a released transaction may still be sent, and then it has an outcome.
	e := d.mustReadEntry(d.addUnknownCharge(shop, "c1"))
	e.State, e.UpdatedAt = ledger.Released, recorded
	checkEqual(t, "released", becameFinal(e), time.Time{})
}

func TestExportOverwrites(t *testing.T) {
	d, shop := newShopTool(t)
	d.addDeliveredPayment(shop, 1, d.now)
	file := filepath.Join(t.TempDir(), "out")
	line := "export ShopA --from 2026-03-01 --to 2026-03-01 --format csv --output " + file
	d.mustRun(line, nil)
	first := readFile(t, file)
	d.expectExit(line, ExitUsage, "--overwrite")
	d.addDeliveredPayment(shop, 2, d.now)
	d.failEveryRead(1)
	d.expectExit(line+" --overwrite", ExitFailed, "injected")
	d.ledger.InjectFaults(nil)
	line = "export ShopA --from 2026-03-01 --to 2026-03-02 --overwrite --output " + file
	d.expectExit(line, ExitDone, "2 transactions")
	if text := readFile(t, file); len(text) <= len(first) || strings.Count(text, "\n") != 3 {
		t.Errorf("the file has %q", text)
	}
	for _, wrong := range []string{"export", "export ShopA --all", "export ShopA --overwrite --since yesterday",
		"export ShopA --since yesterday --from 2026-03-01", "export ShopA --since soon"} {
		d.expectExit(wrong, ExitUsage, "")
	}
}

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
		"\uff1d1", "\uff0b1", "\uff0d1", "\uff201", "a;=1", "a; =1", "a;;=1;+2;-3;@4", "a\t=1", "a\t\t=1", "a,=1", "a\n=1",
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
