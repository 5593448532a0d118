package gatewayctl

import (
	"encoding/csv"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
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
