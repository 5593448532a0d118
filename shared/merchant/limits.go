package merchant

import (
	"cmp"
	"maps"
	"slices"

	"mobilegateway/shared/market"
)

// The highest rate limits. A table takes about 1000 writes per second of one item, and a limited request is one write.
const (
	MaxRequestsPerSecond = 1000
	MaxBurst             = 10000
)

// The rate limit that the onboarding gives a merchant, if no other is chosen (decision "merchant-limits").
const (
	DefaultRequestsPerSecond = 20
	DefaultBurst             = 40
)

// RateLimit returns how many requests the merchant may send per second, and how many at once. limited is false without
// a limit. A profile without a burst may send the requests of one second at once.
func (l *Limits) RateLimit() (perSecond, burst int, limited bool) {
	if l.RequestsPerSecond <= 0 {
		return 0, 0, false
	}
	return l.RequestsPerSecond, cmp.Or(max(l.Burst, 0), l.RequestsPerSecond), true
}

// DailyAmountLimit returns the limit of a day's charges and payments in a currency, in minor units. limited is false
// without a limit.
func (l *Limits) DailyAmountLimit(currency string) (minor int64, limited bool) {
	minor, limited = l.DailyAmounts[currency]
	return minor, limited
}

func (l *Limits) validate(errs *errorList) {
	if l.RequestsPerSecond < 0 || l.RequestsPerSecond > MaxRequestsPerSecond {
		errs.add("requests per second must be from 0 (no limit) to %d", MaxRequestsPerSecond)
	}
	if l.Burst < 0 || l.Burst > MaxBurst {
		errs.add("the burst must be from 0 (as many as per second) to %d", MaxBurst)
	}
	if l.Burst > 0 && l.RequestsPerSecond == 0 {
		errs.add("a burst needs requests per second: set both")
	}
	for _, currency := range slices.Sorted(maps.Keys(l.DailyAmounts)) {
		if _, known := market.CurrencyExponent(currency); !known {
			errs.add("daily amount: no country has the currency %q", currency)
		}
		if l.DailyAmounts[currency] <= 0 {
			errs.add("daily amount: %s must be more than 0", currency)
		}
	}
}
