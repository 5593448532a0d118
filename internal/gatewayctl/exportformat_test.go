package gatewayctl

import (
	"encoding/csv"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/storetest"
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
