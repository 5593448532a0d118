package gatewayctl

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// newChain returns a chain of starts and completions with their copies, and two records of the older form from before
// it.
func newChain(t *testing.T, count int) (items []AuditItem, copies []string) {
	t.Helper()
	for i := range 2 {
		old, err := json.Marshal(Record{ID: fmt.Sprint("2025-", i), At: chainStart.Add(-day), Outcome: OutcomeDone})
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, AuditItem{fmt.Sprint("audit#2025-", i), string(old)})
	}
	for i := range count {
		item := lastLink(items).next(Record{
			ID: fmt.Sprint(i / 2), At: chainStart.Add(time.Duration(i) * day), Who: "ama",
			Outcome: []string{OutcomeStarted, OutcomeDone}[i%2],
		})
		items, copies = append(items, item), append(copies, item.Document)
	}
	return items, copies
}

var chainStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// chained is the place of a sequence in newChain's items.
func chained(sequence int) int { return sequence + 1 }

// forge changes a stored record.
func forge(item *AuditItem, change func(*Record)) {
	r := readAuditItem(*item).Record
	change(&r)
	document, _ := json.Marshal(r)
	item.Document = string(document)
}

// rewriteFrom makes the links of a chain valid again from a sequence on, as a forger with the whole table would.
func rewriteFrom(items []AuditItem, sequence int) {
	for i := chained(sequence); i < len(items); i++ {
		forge(&items[i], func(r *Record) { r.Previous = readAuditItem(items[i-1]).link.hash })
	}
}

// TestVerifyFindsFaults changes a chain of five records in every way, once with the copies and once without.
func TestVerifyFindsFaults(t *testing.T) {
	for name, c := range map[string]struct {
		tamper        func(items []AuditItem) []AuditItem
		want          string // with copies
		withoutCopies string // by the chain only
	}{
		"nothing": {tamper: func(i []AuditItem) []AuditItem { return i }},
		"a record is changed": {
			tamper: func(i []AuditItem) []AuditItem {
				forge(&i[chained(3)], func(r *Record) { r.Who = "kofi" })
				return i
			}, want: "3 changed, 3 changed", withoutCopies: "3 changed",
		},
		"a record is changed, and the chain behind it": {
			tamper: func(i []AuditItem) []AuditItem {
				forge(&i[chained(3)], func(r *Record) { r.Who = "kofi" })
				rewriteFrom(i, 4)
				return i
			}, want: "3 changed, 4 changed, 5 changed",
		},
		"the last record is changed": {
			tamper: func(i []AuditItem) []AuditItem {
				forge(&i[chained(5)], func(r *Record) { r.Outcome = OutcomeFailed })
				return i
			}, want: "5 changed",
		},
		"a record is removed": {
			tamper: func(i []AuditItem) []AuditItem { return slices.Delete(i, chained(3), chained(4)) },
			want:   "3 missing", withoutCopies: "3 missing",
		},
		"the first two records are removed": {
			tamper: func(i []AuditItem) []AuditItem { return slices.Delete(i, chained(1), chained(3)) },
			want:   "1 missing, 2 missing", withoutCopies: "1 missing",
		},
		"a record is removed, and the others renumbered": {
			tamper: func(i []AuditItem) []AuditItem {
				i = slices.Delete(i, chained(3), chained(4))
				for at := chained(3); at < len(i); at++ {
					forge(&i[at], func(r *Record) { r.Sequence-- })
					i[at].Key = fmt.Sprintf("audit#%012d", at-1)
				}
				rewriteFrom(i, 3)
				return i
			}, want: "3 changed, 4 changed, 5 missing",
		},
		"the end is cut off": {
			tamper: func(i []AuditItem) []AuditItem { return i[:chained(4)] },
			want:   "4 missing, 5 missing",
		},
		"all is removed": {
			tamper: func(i []AuditItem) []AuditItem { return i[:2] },
			want:   "1 missing, 2 missing, 3 missing, 4 missing, 5 missing",
		},
		"two records are exchanged": {
			tamper: func(i []AuditItem) []AuditItem {
				i[chained(2)].Document, i[chained(3)].Document = i[chained(3)].Document, i[chained(2)].Document
				return i
			}, want: "2 moved, 2 changed, 3 moved, 3 changed", withoutCopies: "2 moved, 3 moved",
		},
		"an item is not JSON": {
			tamper: func(i []AuditItem) []AuditItem { i[chained(2)].Document = "{"; return i },
			want:   "2 malformed, 2 changed", withoutCopies: "2 malformed",
		},
		"an item of the older form is not JSON": {
			tamper: func(i []AuditItem) []AuditItem { i[0].Document = "{"; return i },
			want:   "0 malformed", withoutCopies: "0 malformed",
		},
		"a record of the older form is added": {
			tamper: func(i []AuditItem) []AuditItem {
				forge(&i[0], func(r *Record) { r.At = chainStart.Add(time.Second) })
				return i
			}, want: "0 outside-chain", withoutCopies: "0 outside-chain",
		},
		"a record far behind the end": {
			tamper: func(i []AuditItem) []AuditItem {
				return append(i, chainLink{999_999_999, "x"}.next(Record{ID: "far", Outcome: OutcomeStarted}))
			}, want: "6 missing, 1000000000 no-copy", withoutCopies: "6 missing",
		},
		"a record is changed, and its original put under another key": {
			tamper: func(i []AuditItem) []AuditItem {
				original := AuditItem{"audit#0000000000003", i[chained(3)].Document}
				forge(&i[chained(3)], func(r *Record) { r.Who = "kofi" })
				return append(i, original)
			}, want: "3 changed, 3 changed, 0 outside-chain", withoutCopies: "3 changed, 0 outside-chain",
		},
		"a record of the chain is repeated under a key of the older form": {
			tamper: func(i []AuditItem) []AuditItem {
				return append(i, AuditItem{"audit#2025-2", i[chained(1)].Document})
			}, want: "0 outside-chain", withoutCopies: "0 outside-chain",
		},
		"a record is added without a copy": {
			tamper: func(i []AuditItem) []AuditItem {
				return append(i, lastLink(i).next(Record{ID: "more", Outcome: OutcomeStarted}))
			}, want: "6 no-copy",
		},
		"a completion without a start is added": {
			tamper: func(i []AuditItem) []AuditItem { return append(i, lastLink(i).next(Record{ID: "more"})) },
			want:   "6 no-start",
		},
	} {
		t.Run(name, func(t *testing.T) {
			items, copies := newChain(t, 5)
			items = c.tamper(items)
			checkEqual(t, "faults", faultsOf(verifyAudit(items, copies, chainStart)), c.want)
			alone := verifyAudit(items, nil, chainStart)
			alone.Faults = slices.DeleteFunc(alone.Faults, func(f auditFault) bool {
				return f.Fault == faultNoCopy || f.Fault == faultNoStart
			})
			checkEqual(t, "faults by the chain only", faultsOf(alone), c.withoutCopies)
		})
	}
}

// faultsOf is a result in one line.
func faultsOf(r auditResult) string {
	return joinComma(mapAll(r.Faults, func(f auditFault) string { return fmt.Sprint(f.Sequence, " ", f.Fault) }))
}

// TestCopyProvesEarlierRecords: an interrupted command stays a fault until the next copy. The chain proves its record.
func TestCopyProvesEarlierRecords(t *testing.T) {
	items, copies := newChain(t, 5)
	result := verifyAudit(items, slices.Delete(slices.Clone(copies), 3, 4), chainStart)
	checkEqual(t, "faults with a later copy", faultsOf(result), "")
	checkEqual(t, "records without a copy", result.WithoutCopy, 1)
	checkEqual(t, "faults at the end", faultsOf(verifyAudit(items, copies[:4], chainStart)), "5 no-copy")
	checkEqual(t, "faults of a repeated copy", faultsOf(verifyAudit(items, append(copies, copies...), chainStart)), "")
	forged := strings.Replace(copies[2], "ama", "kofi", 1)
	checkEqual(t, "faults of a second copy", faultsOf(verifyAudit(items, append(copies, forged, "{"), chainStart)),
		"0 foreign-copy, 3 changed")
}

// TestForgedCompletionStaysAFault: a later change with copies proves the record of an interrupted command. It does not
// prove a completion whose change the log does not have, or has with another completion.
func TestForgedCompletionStaysAFault(t *testing.T) {
	change := func(d *testTool, id string, copied ...string) {
		for _, outcome := range []string{OutcomeStarted, OutcomeDone} {
			item, _ := d.audit.Append(t.Context(), Record{ID: id, At: d.now, Who: "kofi", Outcome: outcome})
			if slices.Contains(copied, outcome) {
				_ = d.audit.Write(t.Context(), d.now, item.Document)
			}
		}
	}
	again := func(d *testTool) { // another completion of the last real change
		id := readAuditItem(d.audit.items[len(d.audit.items)-1]).ID
		_, _ = d.audit.Append(t.Context(), Record{ID: id, At: d.now, Who: "kofi", Outcome: OutcomeFailed})
	}
	for name, c := range map[string]struct {
		write func(d *testTool)
		want  []string // the faults at once, and after the next change
	}{
		"a forged change": {func(d *testTool) { change(d, "x") }, []string{"5 no-copy, 6 no-start", "6 no-start"}},
		"only its completion": {
			func(d *testTool) { change(d, "x", OutcomeDone) }, []string{"6 no-start", "6 no-start"},
		},
		"another completion":        {again, []string{"5 no-start", "5 no-start"}},
		"an interrupted completion": {func(d *testTool) { change(d, "x", OutcomeStarted) }, []string{"6 no-copy", ""}},
		"a change with its copies": {
			func(d *testTool) { change(d, "x", OutcomeStarted, OutcomeDone) }, []string{"", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := newShopTool(t)
			c.write(d)
			for _, want := range c.want {
				checkEqual(t, "faults", faultsOf(verifyAudit(d.audit.items, d.audit.copies, d.now)), want)
				d.now = d.now.Add(time.Second)
				d.expectExit("export ShopA --since today", ExitDone, "")
			}
		})
	}
	// After ten years the log no longer has the copies of the oldest changes.
	items, copies := newChain(t, 9)
	checkEqual(t, "faults before", faultsOf(verifyAudit(items, copies[3:], chainStart)), "2 no-start, 4 no-start")
	checkEqual(t, "faults after", faultsOf(verifyAudit(items, copies[3:], chainStart.Add(10*365*day))), "")
}

func TestAuditVerify(t *testing.T) {
	d, _ := newShopTool(t)
	d.now = d.now.Add(day)
	d.apply("merchant suspend ShopA")
	d.expectExit("audit verify", ExitDone, "no fault")
	result := query[auditResult](d, "audit verify")
	checkEqual(t, "records of three changes", []int{result.Records, result.Copies}, []int{6, 6})
	d.audit.items[2].Document = strings.Replace(d.audit.items[2].Document, "ama", "kofi", 1)
	d.expectExit("audit verify", ExitFailed, "2 faults")
	d.expectExit("audit verify --since yesterday", ExitFailed, "2 faults")
	d.expectExit("audit verify --since today", ExitDone, "no fault")
	d.expectExit("audit verify --since 2026-03-03", ExitDone, "no fault")
}

// TestForgedTimeHidesNoFault: --since uses the times of copies. A forger chooses only those in the table.
func TestForgedTimeHidesNoFault(t *testing.T) {
	old := chainStart.Add(-30 * day)
	for name, tamper := range map[string]func(items []AuditItem) []AuditItem{
		"changed": func(i []AuditItem) []AuditItem {
			forge(&i[len(i)-2], func(r *Record) { r.At, r.CompletedAt = old, old })
			return i
		},
		"added": func(i []AuditItem) []AuditItem {
			return append(i, lastLink(i).next(Record{ID: "more", At: old}))
		},
		"removed, and the next one changed": func(i []AuditItem) []AuditItem {
			forge(&i[len(i)-1], func(r *Record) { r.At, r.CompletedAt = old, old })
			return slices.Delete(i, len(i)-2, len(i)-1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := newShopTool(t)
			d.audit.items = tamper(d.audit.items)
			d.expectExit("audit verify --since today", ExitFailed, "fault")
		})
	}
}

// TestRecordOutsideTheChainHidesNoChange: another item with the ID of a change does not take its line.
func TestRecordOutsideTheChainHidesNoChange(t *testing.T) {
	for name, document := range map[string]string{
		"a record":  `{"id":"ID","at":"2025-01-01T00:00:00Z","who":"kofi","outcome":"done"}`,
		"malformed": `[]`,
	} {
		for _, first := range []bool{true, false} {
			d, _ := newShopTool(t)
			id := readAuditItem(d.audit.items[3]).ID
			at := len(d.audit.items)
			if first {
				at = 0
			}
			forged := AuditItem{"audit#" + id, strings.Replace(document, "ID", id, 1)}
			d.audit.items = slices.Insert(d.audit.items, at, forged)
			_, stdout, _ := d.run("audit")
			if !strings.Contains(stdout, "add a merchant") {
				t.Errorf("%s, first %v: the change is hidden:\n%s", name, first, stdout)
			}
			if name == "malformed" && !strings.Contains(stdout, outcomeMalformed) {
				t.Errorf("first %v: the malformed item is hidden:\n%s", first, stdout)
			}
		}
	}
}

// TestSecondCompletionHidesNoChange: a forged completion of a change is a line of its own.
func TestSecondCompletionHidesNoChange(t *testing.T) {
	for _, first := range []bool{true, false} {
		d, _ := newShopTool(t)
		items := d.audit.items
		id := readAuditItem(items[len(items)-1]).ID
		forged := lastLink(items).next(Record{ID: id, Who: "kofi", Outcome: OutcomeDone})
		at := len(items)
		if first {
			at = 0
		}
		d.audit.items = slices.Insert(items, at, forged)
		d.expectOutput("audit", "kofi", "add a merchant")
	}
}

// TestMalformedItemHidesNothing: a damaged item is a line of its own that no filter hides, and the rest is shown.
func TestMalformedItemHidesNothing(t *testing.T) {
	d, _ := newShopTool(t)
	d.audit.items = append(d.audit.items, AuditItem{"audit#damaged", "[]"}, AuditItem{"audit#20250101T000000.000Z-00",
		`{"id":"20250101T000000.000Z-00","at":"2025-01-01T00:00:00Z","who":"old","outcome":"done"}`})
	d.expectOutput("audit", "audit#damaged", outcomeMalformed, "old", "done", "add a key", "done", "add a merchant")
	d.expectOutput("audit --subject ShopA --since today", "audit#damaged", outcomeMalformed, "add a merchant")
	d.apply("merchant suspend ShopA")
	d.expectExit("attention", ExitWaiting, "") // it reads the records too
}

// TestExportLeavesRecord: an export has two records, also without --yes, and exports nothing without them.
func TestExportLeavesRecord(t *testing.T) {
	d, shop := newShopTool(t)
	d.addDeliveredPayment(shop, 1, d.now)
	for line, want := range map[string]string{
		"export ShopA --since today": "ShopA: 2026-03-01 to 2026-03-01 by creation, csv: 1 transaction",
		"export --all --since yesterday --by finality --format json --reason books": "all merchants: " +
			"2026-02-28 to 2026-02-28 by finality, json: 0 transactions",
	} {
		d.now = d.now.Add(time.Second)
		before := len(d.audit.items)
		d.expectExit(line, ExitDone, "")
		last := readAuditItem(d.audit.items[len(d.audit.items)-1]).Record
		checkEqual(t, line, last.Subject+": "+last.Detail, want)
		checkEqual(t, "what", last.What+" "+last.Outcome+" by "+last.Who, "export transactions done by local:ama@host")
		checkEqual(t, "records", len(d.audit.items)-before, 2)
	}
	d.audit.failAt = OutcomeStarted
	code, out, stderr := d.run("export ShopA --since today")
	if code != ExitFailed || out != "" || !strings.Contains(stderr, "nothing was done") {
		t.Errorf("an export without a record: exit %d, %q, %s", code, out, stderr)
	}
}

// TestChangesNeedCopies: without a place for the copies nothing is changed, and no record is written.
func TestChangesNeedCopies(t *testing.T) {
	d, _ := newShopTool(t)
	before := len(d.audit.items)
	d.changeStores(func(s *Stores) { s.AuditCopies = nil })
	for _, line := range []string{
		"merchant suspend ShopA" + confirmFlags, "audit verify", "export ShopA --since today",
	} {
		d.expectExit(line, ExitUsage, "AUDIT_LOG_GROUP")
	}
	checkEqual(t, "audit items", len(d.audit.items), before)
	d.expectExit("merchant suspend ShopA", ExitDone, "Dry run")
}

// TestFileCopies: the local run's file keeps each line, and is empty before the first.
func TestFileCopies(t *testing.T) {
	file := fileCopies{filepath.Join(t.TempDir(), "audit.jsonl")}
	for _, want := range [][]string{nil, {"{}"}, {"{}", `{"a":1}`}} {
		if len(want) > 0 {
			if err := file.Write(t.Context(), time.Time{}, want[len(want)-1]); err != nil {
				t.Fatal(err)
			}
		}
		documents, err := file.Documents(t.Context())
		if !slices.Equal(documents, want) || err != nil {
			t.Errorf("documents %q, %v, want %q", documents, err, want)
		}
	}
}

// TestSinceDays: the flag has the same form in every command.
func TestSinceDays(t *testing.T) {
	tool, _ := newShopTool(t)
	for _, command := range []string{"find ShopA_1", "attention", "audit", "audit verify", "export ShopA"} {
		for since, want := range map[string]int{"today": ExitDone, "yesterday": ExitDone, "tomorrow": ExitUsage} {
			code, _, stderr := tool.run(command + " --since " + since)
			if (code == ExitUsage) != (want == ExitUsage) {
				t.Errorf("%s --since %s: exit %d, %s", command, since, code, stderr)
			}
		}
	}
}
