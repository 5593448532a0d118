package transactions_test

import (
	"encoding/csv"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
)

// An export has the platform, its reference and its fee, where the ledger or a statement has them.
func TestExportHasFees(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.AddDeliveredPayment(shop, 1, d.Now, func(e *ledger.Entry) {
		e.Route.Account, e.OperatorReference = "mtn-momo/ci", "R1"
	})
	d.AddDeliveredPayment(shop, 2, d.Now)
	d.AddPendingPayment(shop, 3, d.Now, func(e *ledger.Entry) { e.Claim.OperatorReference = "C3" })
	d.Now = d.Now.Add(session.Day)
	folder := t.TempDir()
	statement, books := filepath.Join(folder, "s.csv"), filepath.Join(folder, "books")
	gatewayctltest.WriteFile(t, statement, "reference,order_id,amount,currency,status,time,fee\n"+
		"R2,ShopA_2,1000,XOF,paid,2026-03-01T12:00:00Z,7\nR3,ShopA_3,1000,XOF,paid,2026-03-01T12:00:00Z,8\n")
	d.ExpectExit("reconcile --platform sandbox --day 2026-03-01 --statement "+statement+" --result "+books,
		gatewayctl.ExitFailed, "differ")
	const line = "export ShopA --from 2026-03-01 --to 2026-03-01"
	last := func(flags string) []string {
		t.Helper()
		code, out, stderr := d.Exec(line + flags)
		rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
		if err != nil || code != gatewayctl.ExitDone {
			t.Fatalf("exit %d: %v: %s", code, err, stderr)
		}
		from := slices.Index(transactions.ExportColumns(), "platform")
		var found []string
		for _, row := range rows[1:] {
			found = append(found, strings.Join(row[from:], " "))
		}
		return found
	}
	d.Equal("rows", last(""), []string{"mtn-momo R1 ", "sandbox  ", "sandbox C3 "})
	d.Equal("rows with a statement", last(" --reconciled "+books),
		[]string{"mtn-momo R1 ", "sandbox R2 7", "sandbox C3 "}) // the third one is a difference
	_, out, _ := d.Exec(line + " --format ndjson --reconciled " + books)
	if !strings.Contains(out, `"platform_reference":"R2","fee":"7"}`) {
		t.Error(out)
	}
	d.ExpectFailed(line+" --reconciled "+statement, "not a whole result")
}

// With --with-open an export by finality also lists open transactions, by their creation.
func TestExportWithOpen(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.AddDeliveredPayment(shop, 1, d.Now)
	d.AddPendingPayment(shop, 2, d.Now)
	d.AddPendingPayment(shop, 3, d.Now.Add(-session.Day))
	d.AddPendingPayment(shop, 4, d.Now, func(e *ledger.Entry) { e.State = ledger.Released })
	d.AddDeliveredPayment(shop, 5, d.Now, func(e *ledger.Entry) { e.FinalAt = d.Now.Add(24 * time.Hour) })
	d.AddUnknownCharge(shop, "c1")
	const line = "export ShopA --from 2026-03-01 --to 2026-03-01"
	for flags, want := range map[string]int{" --by finality": 1, " --by finality --with-open": 3, "": 5} {
		_, out, _ := d.Exec(line + flags)
		d.Equal("rows of"+flags, len(exportedIDs(t, "csv", out)), want)
	}
	d.ExpectExit(line+" --with-open", gatewayctl.ExitUsage, "--by finality")
}
