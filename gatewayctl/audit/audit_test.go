package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/audit"
	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/proof/kits/gatewayctltest"
)

func TestAuditVerify(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	d.Now = d.Now.Add(session.Day)
	d.Apply("merchant suspend ShopA")
	d.ExpectExit("audit verify", gatewayctl.ExitDone, "no fault")
	result := gatewayctltest.Query[audit.Result](d, "audit verify")
	d.Equal("records of three changes", []int{result.Records, result.Copies}, []int{6, 6})
	d.Audit.Stored[2].Document = strings.Replace(d.Audit.Stored[2].Document, "ama", "kofi", 1)
	d.ExpectExit("audit verify", gatewayctl.ExitFailed, "2 faults")
	d.ExpectExit("audit verify --since yesterday", gatewayctl.ExitFailed, "2 faults")
	d.ExpectExit("audit verify --since today", gatewayctl.ExitDone, "no fault")
	d.ExpectExit("audit verify --since 2026-03-03", gatewayctl.ExitDone, "no fault")
}

// TestForgedTimeHidesNoFault: --since uses the times of copies. A forger chooses only those in the table.
func TestForgedTimeHidesNoFault(t *testing.T) {
	old := chainStart.Add(-30 * session.Day)
	for name, tamper := range map[string]func(items []auditlog.Item) []auditlog.Item{
		"changed": func(i []auditlog.Item) []auditlog.Item {
			forge(&i[len(i)-2], func(r *auditlog.Record) { r.At, r.CompletedAt = old, old })
			return i
		},
		"added": func(i []auditlog.Item) []auditlog.Item {
			return append(i, auditlog.LastLink(i).Next(auditlog.Record{ID: "more", At: old}))
		},
		"removed, and the next one changed": func(i []auditlog.Item) []auditlog.Item {
			forge(&i[len(i)-1], func(r *auditlog.Record) { r.At, r.CompletedAt = old, old })
			return slices.Delete(i, len(i)-2, len(i)-1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := gatewayctltest.NewShop(t)
			d.Audit.Stored = tamper(d.Audit.Stored)
			d.ExpectExit("audit verify --since today", gatewayctl.ExitFailed, "fault")
		})
	}
}

// TestForgedItemHidesNoChange: another item with the ID of a change is a line of its own, or none. It never takes the
// line of the change.
func TestForgedItemHidesNoChange(t *testing.T) {
	outside := func(document string) func([]auditlog.Item) auditlog.Item {
		return func(items []auditlog.Item) auditlog.Item {
			id := auditlog.ReadItem(items[len(items)-1]).ID
			return auditlog.Item{Key: "audit#" + id, Document: strings.Replace(document, "ID", id, 1)}
		}
	}
	for name, c := range map[string]struct {
		forged func([]auditlog.Item) auditlog.Item
		lines  []string
	}{
		"a record outside the chain": {
			outside(`{"id":"ID","at":"2025-01-01T00:00:00Z","who":"kofi","outcome":"done"}`),
			[]string{"add a merchant"},
		},
		"a malformed item": {outside(`[]`), []string{auditlog.OutcomeMalformed, "add a merchant"}},
		"a second completion": {func(items []auditlog.Item) auditlog.Item {
			id := auditlog.ReadItem(items[len(items)-1]).ID
			return auditlog.LastLink(items).Next(auditlog.Record{ID: id, Who: "kofi", Outcome: auditlog.OutcomeDone})
		}, []string{"kofi", "add a merchant"}},
	} {
		for _, last := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", last ", last), func(t *testing.T) {
				d, _ := gatewayctltest.NewShop(t)
				at := map[bool]int{true: len(d.Audit.Stored)}[last]
				d.Audit.Stored = slices.Insert(d.Audit.Stored, at, c.forged(d.Audit.Stored))
				d.ExpectOutput("audit", c.lines...)
			})
		}
	}
}

// TestMalformedItemHidesNothing: a damaged item is a line of its own that no filter hides, and the rest is shown.
func TestMalformedItemHidesNothing(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	d.Audit.Stored = append(d.Audit.Stored, auditlog.Item{Key: "audit#damaged", Document: "[]"},
		auditlog.Item{Key: "audit#20250101T000000.000Z-00",
			Document: `{"id":"20250101T000000.000Z-00","at":"2025-01-01T00:00:00Z","who":"old","outcome":"done"}`})
	d.ExpectOutput("audit", "audit#damaged", auditlog.OutcomeMalformed, "old", "done", "add a key", "done",
		"add a merchant")
	d.ExpectOutput("audit --subject ShopA --since today", "audit#damaged", auditlog.OutcomeMalformed, "add a merchant")
	d.Apply("merchant suspend ShopA")
	d.ExpectExit("attention", gatewayctl.ExitWaiting, "") // it reads the records too
}

// TestChangesNeedCopies: without a place for the copies nothing is changed, and no record is written.
func TestChangesNeedCopies(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	before := len(d.Audit.Stored)
	d.ChangeStores(func(s *deployment.Stores) { s.AuditCopies = nil })
	for _, line := range []string{
		"merchant suspend ShopA" + gatewayctltest.Confirm, "audit verify", "export ShopA --since today",
	} {
		d.ExpectExit(line, gatewayctl.ExitUsage, "AUDIT_LOG_GROUP")
	}
	d.Equal("audit items", len(d.Audit.Stored), before)
	d.ExpectExit("merchant suspend ShopA", gatewayctl.ExitDone, "Dry run")
}
