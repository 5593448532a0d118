package audit_test

import (
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

// TestRecordOutsideTheChainHidesNoChange: another item with the ID of a change does not take its line.
func TestRecordOutsideTheChainHidesNoChange(t *testing.T) {
	for name, document := range map[string]string{
		"a record":  `{"id":"ID","at":"2025-01-01T00:00:00Z","who":"kofi","outcome":"done"}`,
		"malformed": `[]`,
	} {
		for _, first := range []bool{true, false} {
			d, _ := gatewayctltest.NewShop(t)
			id := auditlog.ReadItem(d.Audit.Stored[3]).ID
			at := len(d.Audit.Stored)
			if first {
				at = 0
			}
			forged := auditlog.Item{Key: "audit#" + id, Document: strings.Replace(document, "ID", id, 1)}
			d.Audit.Stored = slices.Insert(d.Audit.Stored, at, forged)
			_, stdout, _ := d.Exec("audit")
			if !strings.Contains(stdout, "add a merchant") {
				t.Errorf("%s, first %v: the change is hidden:\n%s", name, first, stdout)
			}
			if name == "malformed" && !strings.Contains(stdout, auditlog.OutcomeMalformed) {
				t.Errorf("first %v: the malformed item is hidden:\n%s", first, stdout)
			}
		}
	}
}

// TestSecondCompletionHidesNoChange: a forged completion of a change is a line of its own.
func TestSecondCompletionHidesNoChange(t *testing.T) {
	for _, first := range []bool{true, false} {
		d, _ := gatewayctltest.NewShop(t)
		items := d.Audit.Stored
		id := auditlog.ReadItem(items[len(items)-1]).ID
		forged := auditlog.LastLink(items).Next(auditlog.Record{ID: id, Who: "kofi", Outcome: auditlog.OutcomeDone})
		at := len(items)
		if first {
			at = 0
		}
		d.Audit.Stored = slices.Insert(items, at, forged)
		d.ExpectOutput("audit", "kofi", "add a merchant")
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
