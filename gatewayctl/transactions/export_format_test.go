package transactions_test

import (
	"encoding/csv"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/proof/kits/gatewayctltest"
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
		var views []entries.View
		if err := json.Unmarshal([]byte(text), &views); err != nil || views == nil {
			t.Fatalf("not a JSON array: %v in %.200s", err, text)
		}
		for _, v := range views {
			ids = append(ids, v.ID)
		}
	default:
		for line := range strings.Lines(text) {
			var v entries.View
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatalf("%v in the line %q", err, line)
			}
			ids = append(ids, v.ID)
		}
	}
	return ids
}

// failEveryRead makes every nth read of a day fail.
func failEveryRead(d *gatewayctltest.Tool, n int) {
	calls := 0
	d.Ledger.InjectFaults(func(c storetest.Call) storetest.Fault {
		if c.Operation != storetest.Day {
			return storetest.NoFault
		}
		if calls++; calls%n == 0 {
			return storetest.FailedBeforeApply
		}
		return storetest.NoFault
	})
}

// TestExportContinues interrupts an export of one merchant and one of all merchants at some pages. Its parts have each
// transaction once: those of a file, and the documents on the standard output.
func TestExportContinues(t *testing.T) {
	const first, second = 3*entries.PageSize + 8, entries.PageSize + 3 // transactions
	for of, count := range map[string]int{"ShopA": first, "--all": first + second} {
		for _, format := range []string{"csv", "json", "ndjson"} {
			t.Run(of+" "+format, func(t *testing.T) {
				d, shop := gatewayctltest.NewShop(t)
				d.AddUnknownCharge(shop, "=c1")
				for i := range first - 1 {
					d.AddDeliveredPayment(shop, i,
						d.Now.Add(time.Duration(i%3)*session.Day).Add(time.Duration(i)*time.Second))
				}
				d.Now = d.Now.Add(time.Hour)
				other := d.Onboard("ShopB")
				for i := range second {
					d.AddDeliveredPayment(other, i, d.Now.Add(time.Duration(i%2)*session.Day))
				}
				line := "export " + of + " --from 2026-03-01 --to 2026-03-03 --format " + format
				_, whole, stderr := d.Exec(line)
				ids := exportedIDs(t, format, whole)
				d.Equal("transactions", len(ids), count)
				d.Equal("a line for each merchant", strings.Contains(stderr, "ShopB: 203 transactions"), of == "--all")
				if format == "csv" && !strings.Contains(whole, ",'=c1,'=1+1,") {
					t.Error("a formula is not marked as text")
				}
				expectExportInFile(d, line, format, whole)

				failEveryRead(d, 3)
				var texts, parts []string
				cursor := ""
				for code := gatewayctl.ExitFailed; code != gatewayctl.ExitDone; {
					var part string
					code, part, stderr = d.Exec(line + cursor)
					texts, parts = append(texts, part), append(parts, exportedIDs(t, format, part)...)
					_, rest, found := strings.Cut(stderr, "--cursor ")
					if code == gatewayctl.ExitFailed && !found {
						t.Fatalf("no cursor: %s", stderr)
					}
					cursor = " --cursor " + strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0])
				}
				d.Equal("transactions in parts", output.JoinComma(parts), output.JoinComma(ids))
				if format != "json" && strings.Join(texts, "") != whole {
					t.Errorf("%d parts differ from the whole of %d bytes", len(texts), len(whole))
				}
				d.ExpectExit(line+" --cursor unknown/2026-03-01/", gatewayctl.ExitUsage, "not one of this export")
			})
		}
	}
}

// expectExportInFile interrupts an export to a file at each third page, and tears a page: the file becomes the whole.
func expectExportInFile(d *gatewayctltest.Tool, line, format, whole string) {
	file := filepath.Join(d.T.TempDir(), "out")
	failEveryRead(d, 3)
	d.ExpectExit(line+" --output "+file, gatewayctl.ExitFailed, "injected")
	half, count := gatewayctltest.ReadFile(d.T, file), len(exportedIDs(d.T, format, whole))
	if ids := exportedIDs(d.T, format, half); len(ids) == 0 || len(ids) >= count {
		d.T.Errorf("half of it: %d transactions", len(ids))
	}
	gatewayctltest.WriteFile(d.T, file, half+"a torn page")
	d.ExpectExit(strings.Replace(line, "--to 2026-03-03", "--to 2026-03-02", 1)+" --output "+file,
		gatewayctl.ExitUsage, "another export")
	for code := gatewayctl.ExitFailed; code != gatewayctl.ExitDone; {
		code, _, _ = d.Exec(line + " --output " + file)
	}
	if text := gatewayctltest.ReadFile(d.T, file); text != whole {
		d.T.Fatalf("%d bytes in pieces, %d whole", len(text), len(whole))
	}
	d.ExpectExit(line+" --output "+file, gatewayctl.ExitUsage, "exists and is not a resumable export")
}

func TestExportOfEmptyRange(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	heading := strings.Join(transactions.ExportColumns(), ",") + "\n"
	for format, want := range map[string]string{"csv": heading, "json": "[]\n", "ndjson": ""} {
		line := "export ShopA --from 2026-03-01 --to 2026-03-02 --format " + format
		code, out, stderr := d.Exec(line)
		if code != gatewayctl.ExitDone || out != want || !strings.Contains(stderr, "0 transactions written") {
			t.Errorf("%s: exit %d, %q, %s", format, code, out, stderr)
		}
		failEveryRead(d, 1)
		if code, out, stderr := d.Exec(line); code != gatewayctl.ExitFailed || out != "" ||
			strings.Contains(stderr, "Continue") {
			t.Errorf("%s, not begun: exit %d, %q, %s", format, code, out, stderr)
		}
		d.Ledger.InjectFaults(nil)
	}
}

func TestExportRefusesACursor(t *testing.T) {
	d := gatewayctltest.New(t)
	d.AddDeliveredPayment(d.Onboard("ShopA"), 1, d.Now)
	for _, cursor := range []string{"garbage", "2026-03-01", "2026-02-28/", "2026-03-02/", "2027-01-01/x", "/",
		"2026-3-1/"} {
		for _, format := range []string{"csv", "json"} {
			code, out, stderr := d.Exec("export ShopA --from 2026-03-01 --to 2026-03-01 --format " + format +
				" --cursor " + cursor)
			if code != gatewayctl.ExitUsage || out != "" || !strings.Contains(stderr, "not one of this export") ||
				strings.Contains(stderr, "Continue") || strings.Contains(stderr, "written") {
				t.Errorf("%s: exit %d, %q, %s", cursor, code, out, stderr)
			}
		}
	}
}

// A resumed export whose last page was written only closes its document.
func TestExportResumedAfterLastPage(t *testing.T) {
	d := gatewayctltest.New(t)
	d.AddDeliveredPayment(d.Onboard("ShopA"), 1, d.Now)
	file := filepath.Join(t.TempDir(), "out")
	line := "export ShopA --from 2026-03-01 --to 2026-03-01 --format json --output " + file
	failEveryRead(d, 1)
	d.ExpectExit(line, gatewayctl.ExitFailed, "injected")
	d.Ledger.InjectFaults(nil)
	var at map[string]any
	if err := json.Unmarshal([]byte(gatewayctltest.ReadFile(t, file+".cursor")), &at); err != nil {
		t.Fatal(err)
	}
	d.MustRun(line, nil)
	whole := gatewayctltest.ReadFile(t, file)
	pages := strings.TrimSuffix(whole, "\n]\n")
	at["cursor"], at["bytes"] = "2026-03-02/", len(pages)
	text, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	gatewayctltest.WriteFile(t, file+".cursor", string(text))
	gatewayctltest.WriteFile(t, file, pages)
	d.MustRun(line, nil)
	d.Equal("the file of both runs", gatewayctltest.ReadFile(t, file), whole)
}

func TestExportByFinality(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.AddDeliveredPayment(shop, 1, d.Now, func(e *ledger.Entry) { e.FinalAt = d.Now.Add(2 * session.Day) })
	d.AddDeliveredPayment(shop, 2, d.Now.Add(2*session.Day))
	d.AddUnknownCharge(shop, "c1")
	d.Update(d.AddUnknownCharge(shop, "c2"), func(e *ledger.Entry) {
		e.State, e.UpdatedAt = ledger.Done, d.Now.Add(2*session.Day)
	})
	d.Now = d.Now.Add(3 * session.Day) // 4 March
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
		code, out, stderr := d.Exec(line + " --format ndjson")
		if ids := exportedIDs(t, "ndjson", out); code != gatewayctl.ExitDone || len(ids) != want {
			t.Errorf("%s: exit %d, %d transactions, want %d; %s", line, code, len(ids), want, stderr)
		}
	}
}

// A write after an outcome does not move the day on which it was recorded: a transaction is exported on one day.
func TestExportedOnTheDayOfItsOutcome(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	recorded, written := d.Now.Add(2*session.Day), d.Now.Add(4*session.Day)
	finalAt := func() time.Time {
		_, out, _ := d.Exec("export ShopA --since today --format ndjson")
		var exported entries.View
		gatewayctltest.Decode(t, out, &exported)
		return exported.FinalAt
	}
	attempt := func(outcome string) []ledger.CallAttempt {
		return []ledger.CallAttempt{{At: d.Now, Outcome: ledger.CallUnknown}, {
			At: recorded.Add(-time.Second), Millis: 1000, Outcome: outcome,
		}}
	}
	for name, change := range map[string]func(e *ledger.Entry){
		"a manual outcome, then the merchant's repeat": func(e *ledger.Entry) {
			e.Manual.ManualResolution = ledger.ManualResolution{Outcome: ledger.ManuallyApplied, At: recorded}
			e.Call.Attempts = []ledger.CallAttempt{{At: written, Outcome: ledger.CallSucceeded}}
		},
		"a retry that succeeded, then the notification's attempts": func(e *ledger.Entry) {
			e.Call.Attempts = attempt(ledger.CallSucceeded)
		},
		"a refusal, then a conflict": func(e *ledger.Entry) {
			e.State = ledger.Refused
			e.Call.Attempts = append(attempt(ledger.CallRefused), ledger.CallAttempt{
				At: written, Outcome: ledger.CallSucceeded,
			})
		},
		"a late response, then the notification's attempts": func(e *ledger.Entry) {
			e.Outbox.Waiting = []ledger.Notification{{ID: "w", Status: ledger.Successful, At: recorded, Attempts: 9}}
		},
		"no later write": func(e *ledger.Entry) { e.UpdatedAt = recorded },
	} {
		d.Update(d.AddUnknownCharge(shop, "c1"), func(e *ledger.Entry) {
			e.State, e.UpdatedAt = ledger.Done, written
			change(e)
		})
		d.Equal(name, finalAt().Format(time.DateOnly), recorded.Format(time.DateOnly))
	}
	// The same request of a released transaction may still be sent, and then it has an outcome.
	d.Update(d.AddUnknownCharge(shop, "c1"), func(e *ledger.Entry) {
		e.State, e.UpdatedAt = ledger.Released, recorded
	})
	d.Equal("released", finalAt(), time.Time{})
}

func TestExportOverwrites(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.AddDeliveredPayment(shop, 1, d.Now)
	file := filepath.Join(t.TempDir(), "out")
	line := "export ShopA --from 2026-03-01 --to 2026-03-01 --format csv --output " + file
	d.MustRun(line, nil)
	first := gatewayctltest.ReadFile(t, file)
	d.ExpectExit(line, gatewayctl.ExitUsage, "--overwrite")
	d.AddDeliveredPayment(shop, 2, d.Now)
	failEveryRead(d, 1)
	d.ExpectExit(line+" --overwrite", gatewayctl.ExitFailed, "injected")
	d.Ledger.InjectFaults(nil)
	line = "export ShopA --from 2026-03-01 --to 2026-03-02 --overwrite --output " + file
	d.ExpectExit(line, gatewayctl.ExitDone, "2 transactions")
	if text := gatewayctltest.ReadFile(t, file); len(text) <= len(first) || strings.Count(text, "\n") != 3 {
		t.Errorf("the file has %q", text)
	}
	for _, wrong := range []string{"export", "export ShopA --all", "export ShopA --overwrite --since yesterday",
		"export ShopA --since yesterday --from 2026-03-01", "export ShopA --since soon"} {
		d.ExpectExit(wrong, gatewayctl.ExitUsage, "")
	}
}
