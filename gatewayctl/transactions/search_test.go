package transactions_test

import (
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
)

// addNumbered stores payments of a merchant, one each second before now, whose amounts are their numbers.
func addNumbered(d *gatewayctltest.Tool, shop merchants.Onboarding, count int) {
	for i := range count {
		d.AddDeliveredPayment(shop, i, d.Now.Add(-time.Duration(i)*time.Second), func(e *ledger.Entry) {
			e.Amount.Minor = int64(1000 + i)
		})
	}
}

// find by filters lists what a person looks for over all merchants, and no number.
func TestFindByFilters(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	addNumbered(d, shop, 7)
	addNumbered(d, d.Onboard("ShopB"), 7)
	d.ExpectOutput("find --amount 1005 --payer 2000",
		"TIME", "MERCHANT", "KEY", "KIND", "OPERATOR", "COUNTRY", "AMOUNT", "STATUS", "STATE", "PAYER",
		"2026-03-01T11:59:55Z", "ShopA", "ShopA_5", "pay", "sandbox", "CI", "1005 XOF", "successful", "done", "**00",
		"ShopB_5")
	d.ExpectOutput("find --amount 1005 --merchant shopb --since 11:00 --until 12:00", "ShopB_5")
	found := gatewayctltest.Query[transactions.FilteredResult](d, "find --amount 1005 --merchant shopb --since 11:00")
	list := gatewayctltest.Query[[]transactionsView](d, "list ShopB")
	d.Equal("rows", len(found.Transactions), 1)
	d.Equal("row as the list's", transactionsView{found.Transactions[0].ID, found.Transactions[0].MSISDN}, list[1])
	d.Equal("searched until", found.SearchedUntil, d.Now.Add(-time.Hour))
	d.Equal("continue", found.Continue, "")
	d.ExpectWithout("find --since today", gatewayctl.ExitDone, "0707072000")
	d.ExpectExit("find --amount 7", gatewayctl.ExitDone, "0 transactions on this page",
		"2026-03-01T00:00:00Z to 2026-03-01T12")
	d.ExpectOutput("find --amount 7 --json", `"transactions": []`, `"searched_until": "2026-03-01T00:00:00Z"`,
		`"continue": ""`, `"calls": `)
}

// transactionsView is a part of a row of list.
type transactionsView struct {
	ID     string `json:"id"`
	MSISDN string `json:"msisdn"`
}

// The printed command shows the next page.
func TestFindContinues(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	addNumbered(d, shop, 250)
	line, rows := "find --merchant ShopA --status successful", 0
	for pages := 1; line != ""; pages++ {
		code, out, stderr := d.Exec(line)
		rows += strings.Count(out, "ShopA_")
		_, next, more := strings.Cut(stderr, "Continue with\ngatewayctl ")
		if code != gatewayctl.ExitDone || more != (pages < 3) ||
			more && !strings.Contains(stderr, "searched until 11:5") {
			t.Fatalf("page %d: exit %d: %s", pages, code, stderr)
		}
		line = strings.TrimSpace(next)
		if more && !strings.Contains(line, " --continue=") { // a separate word that begins with - would be a flag
			t.Errorf("the command is %q", line)
		}
	}
	d.Equal("rows of all pages", rows, 250)
}

func TestFindRefusesFilters(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	for line, want := range map[string]string{
		"find":                                   "or filters such as",
		"find --payer 34":                        "payer needs another filter",
		"find --payer 34 --since today":          "payer needs another filter",
		"find --payer 0707072000 --amount 1":     "the last 2 to 4 digits",
		"find --since 31:00":                     `"31:00" is not a day`,
		"find ShopA_1 --since 31:00":             `"31:00" is not a day`,
		"find ShopA_1 --amount 5":                "a value takes only --merchant and --since",
		"find ShopA_1 --until today":             "a value takes only --merchant and --since",
		"find --amount 5 --continue abc":         "damaged or not whole",
		"find --since 2026-03-02 --until 10:00":  "the time range is empty",
		"find --merchant ShopA --country france": `country "france" is not one of`,
	} {
		d.ExpectExit(line, gatewayctl.ExitUsage, want)
	}
	d.ExpectWithout("find --payer 0707072000 --amount 1", gatewayctl.ExitUsage, "0707072000")
	d.ExpectExit("find --merchant ShopX --since today", gatewayctl.ExitFailed, "there is no merchant")
}
