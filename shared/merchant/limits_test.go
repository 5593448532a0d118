package merchant_test

import (
	"strings"
	"testing"

	"mobilegateway/proof/kits/merchanttest"
	"mobilegateway/shared/merchant"
)

// Decision "merchant-limits": no limits by default.
func TestZeroLimitsMeanUnlimited(t *testing.T) {
	p := merchanttest.NewProfile(t, "DemoShop", 1)
	if _, _, limited := p.RateLimit(); limited {
		t.Error("a new profile has a rate limit")
	}
	if _, limited := p.DailyAmounts["XOF"]; limited {
		t.Error("a new profile has a daily amount")
	}
}

func TestLimits(t *testing.T) {
	p := merchanttest.NewProfile(t, "DemoShop", 1)
	p.RequestsPerSecond, p.DailyAmounts = 5, map[string]int64{"XOF": 1000}
	if perSecond, burst, limited := p.RateLimit(); perSecond != 5 || burst != 5 || !limited {
		t.Errorf("%d per second, burst %d (limited: %v), want 5 and 5", perSecond, burst, limited)
	}
	p.Burst = 20
	if _, burst, _ := p.RateLimit(); burst != 20 {
		t.Errorf("burst %d, want 20", burst)
	}
	if limit, limited := p.DailyAmounts["XOF"]; limit != 1000 || !limited {
		t.Errorf("daily amount %d (limited: %v), want 1000", limit, limited)
	}
	if _, limited := p.DailyAmounts["XAF"]; limited {
		t.Error("the limit of XOF applies to XAF")
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
		"XOF must be more than 0": func(p *merchant.Profile) { p.DailyAmounts = map[string]int64{"XOF": 0} },
	} {
		c := p.Clone()
		change(c)
		if err := c.Validate(false); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %q", err, name)
		}
	}
}
