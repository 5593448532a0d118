package gatewayctl

import (
	"fmt"
	"testing"
)

// decision "merchant-limits".
func TestLimits(t *testing.T) {
	d, shop := newShopTool(t)
	if shop.RequestsPerSecond != 20 || shop.Burst != 40 || len(shop.DailyAmounts) != 0 {
		t.Errorf("a new merchant has the limits %d, %d, %v; want the default rate and no amount",
			shop.RequestsPerSecond, shop.Burst, shop.DailyAmounts)
	}
	type rates struct {
		PerSecond, Burst limit
		Amounts          map[string]string
	}
	check := func(flags string, want rates) {
		t.Helper()
		d.apply("merchant change ShopA " + flags)
		view := query[merchantView](d, "merchant show ShopA")
		checkEqual(t, "limits after "+flags, rates{view.RequestsPerSecond, view.Burst, view.DailyAmounts}, want)
	}
	both := map[string]string{"XOF": "1000000", "USD": "12.50"}
	check("--requests-per-second 5 --burst 20 --daily-amount XOF=1000000 --daily-amount usd=12.5", rates{5, 20, both})
	profile, err := d.merchants.Profile(t.Context(), shop.ID)
	if err != nil || profile.DailyAmounts["USD"] != 1250 {
		t.Errorf("stored amount: %d, %v", profile.DailyAmounts["USD"], err)
	}
	d.expectOutput("merchant show ShopA", "requests per second  5")
	check("--burst 0", rates{5, 5, both})
	check("--country ci,sn", rates{5, 5, both})
	check("--daily-amount XOF=none", rates{5, 5, map[string]string{"USD": "12.50"}})
	check("--requests-per-second 0 --daily-amount USD=none", rates{0, 0, map[string]string{}})
	d.expectOutput("merchant show ShopA", "requests per second  no limit")
	for line, why := range map[string]string{
		"--daily-amount EUR=5": "no country", "--daily-amount XOF=1.5": "not an amount",
		"--daily-amount XOF":   "not an amount",
		"--daily-amount XOF=0": "not an amount", "--requests-per-second 1001": "requests per second",
		"--burst 5":                "a burst needs",
		"--requests-per-second=-1": "requests per second",
	} {
		d.expectExit("merchant change ShopA "+line+confirmFlags, ExitUsage, why)
	}
}

// decision "merchant-limits": the onboarding gives a merchant the default rate, unless a flag chooses another.
func TestDefaultRate(t *testing.T) {
	d, _ := newShopTool(t)
	for flags, want := range map[string][2]limit{
		"":                                   {20, 40},
		" --burst 5":                         {20, 5},
		" --requests-per-second 3":           {3, 3},
		" --requests-per-second 3 --burst 9": {3, 9},
		" --requests-per-second 0":           {0, 0},
	} {
		name := fmt.Sprintf("Shop%d%d", want[0], want[1])
		d.apply("merchant add " + name + " --country ci --operator sandbox" + flags)
		view := query[merchantView](d, "merchant show "+name)
		checkEqual(t, "rate after merchant add"+flags, [2]limit{view.RequestsPerSecond, view.Burst}, want)
	}
}
