package merchant

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"mobilegateway/shared/market"
)

// The most that a merchant's limit on requests can be: a table takes about 1000 writes a second of one item, and a limit
// is one write a request. MaxBurst bounds what may come at once.
const (
	MaxRequestsPerSecond = 1000
	MaxBurst             = 10000
)

// RateLimit is how many requests the merchant may send a second, and how many of them at once. on is false where there is no
// limit. A profile that names no burst has one of as many as a second has.
func (p *Profile) RateLimit() (perSecond, burst int, limited bool) {
	if p.RequestsPerSecond <= 0 {
		return 0, 0, false
	}
	if p.Burst <= 0 {
		return p.RequestsPerSecond, p.RequestsPerSecond, true
	}
	return p.RequestsPerSecond, p.Burst, true
}

// DailyAmountLimit is the most that the merchant's charges and payments of a day may come to in a currency, in minor units; on
// is false where there is no limit.
func (p *Profile) DailyAmountLimit(currency string) (minor int64, limited bool) {
	minor, limited = p.DailyAmounts[currency]
	return minor, limited
}

// validateLimits names the faults of the limits.
func (p *Profile) validateLimits() []error {
	var errs []error
	if p.RequestsPerSecond < 0 || p.RequestsPerSecond > MaxRequestsPerSecond {
		errs = append(errs, fmt.Errorf("requests per second must be from 0, for no limit, to %d", MaxRequestsPerSecond))
	}
	if p.Burst < 0 || p.Burst > MaxBurst {
		errs = append(errs, fmt.Errorf("the burst must be from 0, for one second's, to %d", MaxBurst))
	}
	if p.Burst > 0 && p.RequestsPerSecond == 0 {
		errs = append(errs, errors.New("a burst needs requests per second"))
	}
	for _, currency := range slices.Sorted(maps.Keys(p.DailyAmounts)) {
		if _, known := market.CurrencyExponent(currency); !known {
			errs = append(errs, fmt.Errorf("daily amount: no country has the currency %q", currency))
		}
		if p.DailyAmounts[currency] <= 0 {
			errs = append(errs, fmt.Errorf("daily amount: %s must be more than nothing", currency))
		}
	}
	return errs
}
