package settlement_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/reconcile/listing"
	"mobilegateway/gatewayctl/settlement"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
)

// result is the document of settlement --json.
type result struct {
	settlement.View
	Rows []settlement.Row `json:"rows"`
}

const line = "settlement --day 2026-03-01 "

const heading = "reference,order_id,amount,currency,status,time,fee\n"

// newDay is a tool on the morning after a day with four successes of two merchants, and what is not owed.
func newDay(t *testing.T) *gatewayctltest.Tool {
	t.Helper()
	d, shop := gatewayctltest.NewShop(t)
	other := d.Onboard("ShopB")
	day := d.Now
	d.Now = day.Add(20 * time.Hour)
	d.AddDeliveredPayment(shop, 1, day)
	d.AddDeliveredPayment(shop, 2, day, func(e *ledger.Entry) { e.Amount.Minor = 250 })
	d.AddDeliveredPayment(shop, 3, day.Add(-48*time.Hour), func(e *ledger.Entry) {
		e.FinalAt, e.Route.Operator, e.Route.Account = day, "mtn", "mtn-momo/ci" // long pending
	})
	d.AddDeliveredPayment(other, 4, day)
	d.AddDeliveredPayment(shop, 5, day, func(e *ledger.Entry) { e.Status = ledger.Failed })
	d.AddPendingPayment(shop, 6, day)
	d.AddDeliveredPayment(shop, 7, day, func(e *ledger.Entry) { e.FinalAt = day.Add(12 * time.Hour) })
	d.Update(d.AddUnknownCharge(shop, "c1"), func(e *ledger.Entry) {
		e.State, e.CreatedAt, e.UpdatedAt, e.ReservedAt = ledger.Done, day, day, day
	})
	return d
}

// reconciled writes the result of a reconciliation.
func reconciled(d *gatewayctltest.Tool, rows string) string {
	d.T.Helper()
	folder := d.T.TempDir()
	statement, file := filepath.Join(folder, "s.csv"), filepath.Join(folder, "result")
	gatewayctltest.WriteFile(d.T, statement, heading+rows)
	code, _, stderr := d.Exec("reconcile --platform sandbox --day 2026-03-01 --statement " + statement +
		" --result " + file)
	if code == gatewayctl.ExitUsage {
		d.T.Fatal(stderr)
	}
	return file
}

func totalText(t settlement.Total) string {
	return fmt.Sprintf("%s %s %s: %d %s, %d %s, %s, fees %s", t.Merchant, t.Currency, t.Operator, t.Count, t.All,
		t.ReconciledCount, t.Reconciled, t.Difference, t.Fees)
}

// A merchant is owed what became successful on the day, and of it a statement confirms a part.
func TestSettlement(t *testing.T) {
	for name, c := range map[string]struct{ rows, want string }{
		"no statement": {"", ""},
		"a part of it": {"R1,ShopA_1,1000,XOF,paid,2026-03-01T12:00:00Z,10\n" +
			"R2,ShopA_2,999,XOF,paid,2026-03-01T12:00:00Z,2\n",
			"ShopA XOF sandbox: 2 1250, 1 1000, 250, fees 10"},
		"a refund": {"R1,ShopA_1,1000,XOF,paid,2026-03-01T12:00:00Z,10\n" +
			"R2,ShopA_1,1000,XOF,refunded,2026-03-01T12:00:00Z,\n",
			"ShopA XOF sandbox: 2 1250, 0 0, 1250, fees 0"},
		"all of it": {"R1,ShopA_1,1000,XOF,paid,2026-03-01T12:00:00Z,0\n" +
			"R2,ShopA_2,250,XOF,paid,2026-03-02T12:00:00Z,\n",
			"ShopA XOF sandbox: 2 1250, 2 1250, 0, fees 0"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDay(t)
			flags := ""
			if c.rows != "" {
				flags = " --reconciled " + reconciled(d, c.rows)
			}
			found := gatewayctltest.Query[result](d, line+"--json"+flags)
			var texts []string
			for _, total := range found.Totals {
				texts = append(texts, totalText(total))
			}
			want := []string{
				"ShopA USD sandbox: 1 1.50, 0 0.00, 1.50, fees 0.00", "ShopA XOF mtn: 1 1000, 0 0, 1000, fees 0",
				"ShopA XOF sandbox: 2 1250, 0 0, 1250, fees 0", "ShopB XOF sandbox: 1 1000, 0 0, 1000, fees 0",
			}
			if c.rows != "" {
				want[2] = c.want
			}
			d.Equal("totals", strings.Join(texts, "\n"), strings.Join(want, "\n"))
			d.Equal("rows", len(found.Rows), 5)
			d.Equal("closed", found.Closed, true)
		})
	}
}

// A closed day has the same result byte for byte, later too, in each form; an open one has a note.
func TestClosedDayIsReproducible(t *testing.T) {
	d := newDay(t)
	file := reconciled(d, "R1,ShopA_1,1000,XOF,paid,2026-03-01T12:00:00Z,10\n")
	for _, form := range []string{"", "--json", "--csv"} {
		_, first, _ := d.Exec(line + form + " --reconciled " + file)
		d.Now = d.Now.Add(240 * time.Hour)
		_, second, _ := d.Exec(line + form + " --reconciled " + file + " --reconciled " + file)
		d.Equal("the second result of "+form, second, first)
		d.Now = d.Now.Add(-240 * time.Hour)
	}
	d.ExpectExit("settlement --day 2026-03-02", gatewayctl.ExitDone, "not closed until 2026-03-03T01:00:00Z")
	d.ExpectOutput("audit list --since today", "sum a settlement", "all merchants", "2026-03-01: 5 transactions")
}

func TestSettlementOfOneMerchantAsCSV(t *testing.T) {
	d := newDay(t)
	code, out, stderr := d.Exec(line + "--merchant ShopB --csv")
	want := strings.Join(listing.Columns[settlement.Row](), ",") + "\n" +
		"ShopB,XOF,sandbox,sandbox/a1,pay,ShopB_4,1000,2026-03-01T12:00:00Z,2026-03-01T12:00:01Z,,false,\n"
	if code != gatewayctl.ExitDone || out != want || !strings.Contains(stderr, "DIFFERENCE") {
		t.Errorf("exit %d: %s%s, want %s", code, out, stderr, want)
	}
}

// A result that is not whole is refused, and nothing is summed.
func TestDamagedResultIsRefused(t *testing.T) {
	d := newDay(t)
	file := reconciled(d, "R1,ShopA_1,1000,XOF,paid,2026-03-01T12:00:00Z,10\n")
	whole := gatewayctltest.ReadFile(t, file)
	lines := strings.SplitAfter(whole, "\n")
	for name, text := range map[string]string{
		"truncated": whole[:len(whole)-20], "no rows": lines[0], "a row less": lines[0] + strings.Join(lines[2:], ""),
		"a row more": whole + lines[1], "another file": "{}\n", "no JSON": heading,
	} {
		gatewayctltest.WriteFile(t, file, text)
		code, out, stderr := d.Exec(line + "--csv --reconciled " + file)
		if code != gatewayctl.ExitFailed || out != "" || !strings.Contains(stderr, "not a whole result") {
			t.Errorf("%s: exit %d: %s%s", name, code, out, stderr)
		}
	}
}
