package gatewayctl

import (
	"maps"
	"testing"
)

// decision "merchant-limits".
func TestLimits(t *testing.T) {
	d := newTestTool(t)
	shop := d.onboardShop()
	if shop.RequestsPerSecond != 0 || len(shop.DailyAmounts) != 0 {
		t.Errorf("limits by themselves: %+v", shop.merchantView)
	}
	var view merchantView
	show := func() {
		view = merchantView{}
		d.mustRun("merchant show ShopA", &view)
	}
	d.mustRun("merchant change ShopA --requests-per-second 5 --burst 20 --daily-amount XOF=1000000 --daily-amount usd=12.5"+confirmFlags, nil)
	show()
	if view.RequestsPerSecond != 5 || view.Burst != 20 || !maps.Equal(view.DailyAmounts, map[string]string{"XOF": "1000000", "USD": "12.50"}) {
		t.Errorf("%+v", view)
	}
	profile, err := d.merchants.Profile(t.Context(), shop.ID)
	if err != nil || profile.DailyAmounts["USD"] != 1250 {
		t.Errorf("%+v, %v", profile, err)
	}
	d.mustRun("merchant change ShopA --burst 0"+confirmFlags, nil)
	if show(); view.Burst != 5 {
		t.Errorf("the burst that the table shows: %+v", view)
	}
	d.mustRun("merchant change ShopA --country ci,sn"+confirmFlags, nil)
	d.mustRun("merchant change ShopA --daily-amount XOF=none"+confirmFlags, nil)
	show()
	if view.RequestsPerSecond != 5 || !maps.Equal(view.DailyAmounts, map[string]string{"USD": "12.50"}) {
		t.Errorf("what was not named has changed: %+v", view)
	}
	d.mustRun("merchant change ShopA --requests-per-second 0 --daily-amount USD=none"+confirmFlags, nil)
	show()
	if view.RequestsPerSecond != 0 || view.Burst != 0 || len(view.DailyAmounts) != 0 {
		t.Errorf("limits that were taken away: %+v", view)
	}
	for line, why := range map[string]string{
		"--daily-amount EUR=5": "no country", "--daily-amount XOF=1.5": "not an amount", "--daily-amount XOF": "not an amount",
		"--daily-amount XOF=0": "not an amount", "--requests-per-second 1001": "requests per second", "--burst 5": "a burst needs",
		"--requests-per-second=-1": "requests per second",
	} {
		d.expectFailure("merchant change ShopA "+line+confirmFlags, ExitUsage, why)
	}
}
