package merchant_test

import (
	"strings"
	"testing"

	"mobilegateway/shared/merchant"
	"mobilegateway/shared/merchant/merchanttest"
)

// decision "merchant-limits": off by default.
func TestZeroLimitsMeanUnlimited(t *testing.T) {
	p := merchanttest.NewProfile(t, "DemoShop", 1)
	if _, _, limited := p.RateLimit(); limited {
		t.Error("a rate")
	}
	if _, limited := p.DailyAmountLimit("XOF"); limited {
		t.Error("a daily amount")
	}
}

func TestLimits(t *testing.T) {
	p := merchanttest.NewProfile(t, "DemoShop", 1)
	p.RequestsPerSecond, p.DailyAmounts = 5, map[string]int64{"XOF": 1000}
	if perSecond, burst, limited := p.RateLimit(); perSecond != 5 || burst != 5 || !limited {
		t.Errorf("%d a second, burst %d, %v", perSecond, burst, limited)
	}
	p.Burst = 20
	if _, burst, _ := p.RateLimit(); burst != 20 {
		t.Errorf("burst %d", burst)
	}
	if limit, limited := p.DailyAmountLimit("XOF"); limit != 1000 || !limited {
		t.Errorf("limit %d, %v", limit, limited)
	}
	if _, limited := p.DailyAmountLimit("XAF"); limited {
		t.Error("a limit in another currency")
	}
	if err := p.Validate(false); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*merchant.Profile){
		"requests per second must be": func(p *merchant.Profile) { p.RequestsPerSecond = 1001 },
		"burst must be":               func(p *merchant.Profile) { p.Burst = -1 },
		"a burst needs":               func(p *merchant.Profile) { p.RequestsPerSecond = 0 },
		`no country has the currency "EUR"`: func(p *merchant.Profile) {
			p.DailyAmounts = map[string]int64{"EUR": 1}
		},
		"XOF must be more than nothing": func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"XOF": 0} },
	} {
		c := p.Clone()
		if change(c); c.Validate(false) == nil || !strings.Contains(c.Validate(false).Error(), name) {
			t.Errorf("%s: %v", name, c.Validate(false))
		}
	}
}
