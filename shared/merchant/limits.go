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

// Rate is how many requests the merchant may send a second, and how many of them at once. on is false where there is no
// limit. A profile that names no burst has one of as many as a second has.
func (p *Profile) Rate() (perSecond, burst int, on bool) {
	if p.RequestsPerSecond <= 0 {
		return 0, 0, false
	}
	if p.Burst <= 0 {
		return p.RequestsPerSecond, p.RequestsPerSecond, true
	}
	return p.RequestsPerSecond, p.Burst, true
}

// DailyLimit is the most that the merchant's charges and payments of a day may come to in a currency, in minor units; on
// is false where there is no limit.
func (p *Profile) DailyLimit(currency string) (minor int64, on bool) {
	minor, on = p.DailyAmounts[currency]
	return minor, on
}

// checkLimits names the faults of the limits.
func (p *Profile) checkLimits() []error {
	var faults []error
	if p.RequestsPerSecond < 0 || p.RequestsPerSecond > MaxRequestsPerSecond {
		faults = append(faults, fmt.Errorf("requests per second must be from 0, for no limit, to %d", MaxRequestsPerSecond))
	}
	if p.Burst < 0 || p.Burst > MaxBurst {
		faults = append(faults, fmt.Errorf("the burst must be from 0, for one second's, to %d", MaxBurst))
	}
	if p.Burst > 0 && p.RequestsPerSecond == 0 {
		faults = append(faults, errors.New("a burst needs requests per second"))
	}
	for _, currency := range slices.Sorted(maps.Keys(p.DailyAmounts)) {
		if _, known := market.CurrencyExponent(currency); !known {
			faults = append(faults, fmt.Errorf("daily amount: no country has the currency %q", currency))
		}
		if p.DailyAmounts[currency] <= 0 {
			faults = append(faults, fmt.Errorf("daily amount: %s must be more than nothing", currency))
		}
	}
	return faults
}
