package audit_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/audit"
	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/proof/kits/gatewayctltest"
)

// newChain returns a chain of starts and completions with their copies, and two records of the older form from before
// it.
func newChain(t *testing.T, count int) (items []auditlog.Item, copies []string) {
	t.Helper()
	for i := range 2 {
		old, err := json.Marshal(auditlog.Record{ID: fmt.Sprint("2025-", i), At: chainStart.Add(-session.Day),
			Outcome: auditlog.OutcomeDone})
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, auditlog.Item{Key: fmt.Sprint("audit#2025-", i), Document: string(old)})
	}
	for i := range count {
		item := auditlog.LastLink(items).Next(auditlog.Record{
			ID: fmt.Sprint(i / 2), At: chainStart.Add(time.Duration(i) * session.Day), Who: "ama",
			Outcome: []string{auditlog.OutcomeStarted, auditlog.OutcomeDone}[i%2],
		})
		items, copies = append(items, item), append(copies, item.Document)
	}
	return items, copies
}

var chainStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// chained is the place of a sequence in newChain's items.
func chained(sequence int) int { return sequence + 1 }

// forge changes a stored record.
func forge(item *auditlog.Item, change func(*auditlog.Record)) {
	r := auditlog.ReadItem(*item).Record
	change(&r)
	document, _ := json.Marshal(r)
	item.Document = string(document)
}

// rewriteFrom makes the links of a chain valid again from a sequence on, as a forger with the whole table would.
func rewriteFrom(items []auditlog.Item, sequence int) {
	for i := chained(sequence); i < len(items); i++ {
		forge(&items[i], func(r *auditlog.Record) { r.Previous = auditlog.ReadItem(items[i-1]).Link.Hash })
	}
}

// TestVerifyFindsFaults changes a chain of five records in every way, once with the copies and once without.
func TestVerifyFindsFaults(t *testing.T) {
	for name, c := range map[string]struct {
		tamper        func(items []auditlog.Item) []auditlog.Item
		want          string // with copies
		withoutCopies string // by the chain only
	}{
		"nothing": {tamper: func(i []auditlog.Item) []auditlog.Item { return i }},
		"a record is changed": {
			tamper: func(i []auditlog.Item) []auditlog.Item {
				forge(&i[chained(3)], func(r *auditlog.Record) { r.Who = "kofi" })
				return i
			}, want: "3 changed, 3 changed", withoutCopies: "3 changed",
		},
		"a record is changed, and the chain behind it": {
			tamper: func(i []auditlog.Item) []auditlog.Item {
				forge(&i[chained(3)], func(r *auditlog.Record) { r.Who = "kofi" })
				rewriteFrom(i, 4)
				return i
			}, want: "3 changed, 4 changed, 5 changed",
		},
		"the last record is changed": {
			tamper: func(i []auditlog.Item) []auditlog.Item {
				forge(&i[chained(5)], func(r *auditlog.Record) { r.Outcome = auditlog.OutcomeFailed })
				return i
			}, want: "5 changed",
		},
		"a record is removed": {
			tamper: func(i []auditlog.Item) []auditlog.Item { return slices.Delete(i, chained(3), chained(4)) },
			want:   "3 missing", withoutCopies: "3 missing",
		},
		"the first two records are removed": {
			tamper: func(i []auditlog.Item) []auditlog.Item { return slices.Delete(i, chained(1), chained(3)) },
			want:   "1 missing, 2 missing", withoutCopies: "1 missing",
		},
		"a record is removed, and the others renumbered": {
			tamper: func(i []auditlog.Item) []auditlog.Item {
				i = slices.Delete(i, chained(3), chained(4))
				for at := chained(3); at < len(i); at++ {
					forge(&i[at], func(r *auditlog.Record) { r.Sequence-- })
					i[at].Key = fmt.Sprintf("audit#%012d", at-1)
				}
				rewriteFrom(i, 3)
				return i
			}, want: "3 changed, 4 changed, 5 missing",
		},
		"the end is cut off": {
			tamper: func(i []auditlog.Item) []auditlog.Item { return i[:chained(4)] },
			want:   "4 missing, 5 missing",
		},
		"all is removed": {
			tamper: func(i []auditlog.Item) []auditlog.Item { return i[:2] },
			want:   "1 missing, 2 missing, 3 missing, 4 missing, 5 missing",
		},
		"two records are exchanged": {
			tamper: func(i []auditlog.Item) []auditlog.Item {
				i[chained(2)].Document, i[chained(3)].Document = i[chained(3)].Document, i[chained(2)].Document
				return i
			}, want: "2 moved, 2 changed, 3 moved, 3 changed", withoutCopies: "2 moved, 3 moved",
		},
		"an item is not JSON": {
			tamper: func(i []auditlog.Item) []auditlog.Item { i[chained(2)].Document = "{"; return i },
			want:   "2 malformed, 2 changed", withoutCopies: "2 malformed",
		},
		"an item of the older form is not JSON": {
			tamper: func(i []auditlog.Item) []auditlog.Item { i[0].Document = "{"; return i },
			want:   "0 malformed", withoutCopies: "0 malformed",
		},
		"a record of the older form is added": {
			tamper: func(i []auditlog.Item) []auditlog.Item {
				forge(&i[0], func(r *auditlog.Record) { r.At = chainStart.Add(time.Second) })
				return i
			}, want: "0 outside-chain", withoutCopies: "0 outside-chain",
		},
		"a record far behind the end": {
			tamper: func(i []auditlog.Item) []auditlog.Item {
				return append(i, auditlog.Link{Sequence: 999_999_999, Hash: "x"}.Next(auditlog.Record{ID: "far",
					Outcome: auditlog.OutcomeStarted}))
			}, want: "6 missing, 1000000000 no-copy", withoutCopies: "6 missing",
		},
		"a record is changed, and its original put under another key": {
			tamper: func(i []auditlog.Item) []auditlog.Item {
				original := auditlog.Item{Key: "audit#0000000000003", Document: i[chained(3)].Document}
				forge(&i[chained(3)], func(r *auditlog.Record) { r.Who = "kofi" })
				return append(i, original)
			}, want: "3 changed, 3 changed, 0 outside-chain", withoutCopies: "3 changed, 0 outside-chain",
		},
		"a record of the chain is repeated under a key of the older form": {
			tamper: func(i []auditlog.Item) []auditlog.Item {
				return append(i, auditlog.Item{Key: "audit#2025-2", Document: i[chained(1)].Document})
			}, want: "0 outside-chain", withoutCopies: "0 outside-chain",
		},
		"a record is added without a copy": {
			tamper: func(i []auditlog.Item) []auditlog.Item {
				return append(i,
					auditlog.LastLink(i).Next(auditlog.Record{ID: "more", Outcome: auditlog.OutcomeStarted}))
			}, want: "6 no-copy",
		},
		"a completion without a start is added": {
			tamper: func(i []auditlog.Item) []auditlog.Item {
				return append(i, auditlog.LastLink(i).Next(auditlog.Record{ID: "more"}))
			},
			want: "6 no-start",
		},
	} {
		t.Run(name, func(t *testing.T) {
			items, copies := newChain(t, 5)
			items = c.tamper(items)
			gatewayctltest.Equal(t, "faults", faultsOf(audit.Verify(items, copies, chainStart)), c.want)
			alone := audit.Verify(items, nil, chainStart)
			alone.Faults = slices.DeleteFunc(alone.Faults, func(f audit.Fault) bool {
				return f.Fault == "no-copy" || f.Fault == "no-start"
			})
			gatewayctltest.Equal(t, "faults by the chain only", faultsOf(alone), c.withoutCopies)
		})
	}
}

// faultsOf is a result in one line.
func faultsOf(r audit.Result) string {
	return output.JoinComma(output.MapAll(r.Faults,
		func(f audit.Fault) string { return fmt.Sprint(f.Sequence, " ", f.Fault) }))
}

// TestCopyProvesEarlierRecords: an interrupted command stays a fault until the next copy. The chain proves its record.
func TestCopyProvesEarlierRecords(t *testing.T) {
	items, copies := newChain(t, 5)
	result := audit.Verify(items, slices.Delete(slices.Clone(copies), 3, 4), chainStart)
	gatewayctltest.Equal(t, "faults with a later copy", faultsOf(result), "")
	gatewayctltest.Equal(t, "records without a copy", result.WithoutCopy, 1)
	gatewayctltest.Equal(t, "faults at the end", faultsOf(audit.Verify(items, copies[:4], chainStart)), "5 no-copy")
	gatewayctltest.Equal(t, "faults of a repeated copy",
		faultsOf(audit.Verify(items, append(copies, copies...), chainStart)), "")
	forged := strings.Replace(copies[2], "ama", "kofi", 1)
	gatewayctltest.Equal(t, "faults of a second copy",
		faultsOf(audit.Verify(items, append(copies, forged, "{"), chainStart)),
		"0 foreign-copy, 3 changed")
}

// TestForgedCompletionStaysAFault: a later change with copies proves the record of an interrupted command. It does not
// prove a completion whose change the log does not have, or has with another completion.
func TestForgedCompletionStaysAFault(t *testing.T) {
	change := func(d *gatewayctltest.Tool, id string, copied ...string) {
		for _, outcome := range []string{auditlog.OutcomeStarted, auditlog.OutcomeDone} {
			item, _ := d.Audit.Append(t.Context(), auditlog.Record{ID: id, At: d.Now, Who: "kofi", Outcome: outcome})
			if slices.Contains(copied, outcome) {
				_ = d.Audit.Write(t.Context(), d.Now, item.Document)
			}
		}
	}
	again := func(d *gatewayctltest.Tool) { // another completion of the last real change
		id := auditlog.ReadItem(d.Audit.Stored[len(d.Audit.Stored)-1]).ID
		_, _ = d.Audit.Append(t.Context(), auditlog.Record{ID: id, At: d.Now, Who: "kofi",
			Outcome: auditlog.OutcomeFailed})
	}
	for name, c := range map[string]struct {
		write func(d *gatewayctltest.Tool)
		want  []string // the faults at once, and after the next change
	}{
		"a forged change": {func(d *gatewayctltest.Tool) { change(d, "x") },
			[]string{"5 no-copy, 6 no-start", "6 no-start"}},
		"only its completion": {
			func(d *gatewayctltest.Tool) { change(d, "x", auditlog.OutcomeDone) }, []string{"6 no-start", "6 no-start"},
		},
		"another completion": {again, []string{"5 no-start", "5 no-start"}},
		"an interrupted completion": {func(d *gatewayctltest.Tool) { change(d, "x", auditlog.OutcomeStarted) },
			[]string{"6 no-copy", ""}},
		"a change with its copies": {
			func(d *gatewayctltest.Tool) { change(d, "x", auditlog.OutcomeStarted, auditlog.OutcomeDone) },
			[]string{"", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := gatewayctltest.NewShop(t)
			c.write(d)
			for _, want := range c.want {
				d.Equal("faults", faultsOf(audit.Verify(d.Audit.Stored, d.Audit.Copies, d.Now)), want)
				d.Now = d.Now.Add(time.Second)
				d.ExpectExit("export ShopA --since today", gatewayctl.ExitDone, "")
			}
		})
	}
	// After ten years the log no longer has the copies of the oldest changes.
	items, copies := newChain(t, 9)
	gatewayctltest.Equal(t, "faults before", faultsOf(audit.Verify(items, copies[3:], chainStart)),
		"2 no-start, 4 no-start")
	gatewayctltest.Equal(t, "faults after",
		faultsOf(audit.Verify(items, copies[3:], chainStart.Add(10*365*session.Day))), "")
}

// TestExportLeavesRecord: an export has two records, also without --yes, and exports nothing without them.
func TestExportLeavesRecord(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.AddDeliveredPayment(shop, 1, d.Now)
	for line, want := range map[string]string{
		"export ShopA --since today": "ShopA: 2026-03-01 to 2026-03-01 by creation, csv: 1 transaction",
		"export --all --since yesterday --by finality --format json --reason books": "all merchants: " +
			"2026-02-28 to 2026-02-28 by finality, json: 0 transactions",
	} {
		d.Now = d.Now.Add(time.Second)
		before := len(d.Audit.Stored)
		d.ExpectExit(line, gatewayctl.ExitDone, "")
		last := auditlog.ReadItem(d.Audit.Stored[len(d.Audit.Stored)-1]).Record
		d.Equal(line, last.Subject+": "+last.Detail, want)
		d.Equal("what", last.What+" "+last.Outcome+" by "+last.Who, "export transactions done by local:ama@host")
		d.Equal("records", len(d.Audit.Stored)-before, 2)
	}
	d.Audit.FailAt = auditlog.OutcomeStarted
	code, out, stderr := d.Exec("export ShopA --since today")
	if code != gatewayctl.ExitFailed || out != "" || !strings.Contains(stderr, "nothing was done") {
		t.Errorf("an export without a record: exit %d, %q, %s", code, out, stderr)
	}
}
