package gatewayctl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/money"
)

// limits are a profile's limits as they are typed. What is not given stays as it is.
type limits struct {
	RequestsPerSecond *int     `placeholder:"N" help:"Requests a second that the merchant may send; 0 for no limit."`
	Burst             *int     `placeholder:"N" help:"Requests that may come at once; 0 for as many as a second has."`
	DailyAmounts      []string `name:"daily-amount" placeholder:"CURRENCY=AMOUNT" help:"The most that charges and payments of a UTC day may come to, such as XOF=1000000; XOF=none for no limit."`
}

// noLimit takes a currency's limit away.
const noLimit = "none"

// apply fills a profile in.
func (c limits) apply(p *merchant.Profile) error {
	if c.RequestsPerSecond != nil {
		p.RequestsPerSecond = *c.RequestsPerSecond
		if p.RequestsPerSecond == 0 {
			p.Burst = 0
		}
	}
	if c.Burst != nil {
		p.Burst = *c.Burst
	}
	var faults []error
	for _, text := range c.DailyAmounts {
		currency, amount, _ := strings.Cut(text, "=")
		currency = strings.ToUpper(currency)
		exponent, known := market.CurrencyExponent(currency)
		minor, err := money.Parse(amount, exponent)
		switch {
		case !known:
			faults = append(faults, fmt.Errorf("daily amount %q: no country has this currency", text))
		case amount == noLimit:
			delete(p.DailyAmounts, currency)
		case err != nil:
			faults = append(faults, fmt.Errorf("daily amount %q: not an amount in %s", text, currency))
		default:
			if p.DailyAmounts == nil {
				p.DailyAmounts = map[string]int64{}
			}
			p.DailyAmounts[currency] = minor
		}
	}
	return errors.Join(faults...)
}

// dailyAmounts writes the limits as amounts, by currency.
func dailyAmounts(p *merchant.Profile) map[string]string {
	amounts := map[string]string{}
	for currency, minor := range p.DailyAmounts {
		exponent, _ := market.CurrencyExponent(currency)
		amounts[currency] = money.Format(minor, exponent)
	}
	return amounts
}

// limitRows are the limits for people.
func limitRows(p *merchant.Profile) table {
	rate := ""
	if perSecond, burst, on := p.RateLimit(); on {
		rate = strconv.Itoa(perSecond) + ", " + strconv.Itoa(burst) + " at once"
	}
	amounts := dailyAmounts(p)
	var words []string
	for _, currency := range slices.Sorted(maps.Keys(amounts)) {
		words = append(words, amounts[currency]+" "+currency)
	}
	return table{{"requests a second", rate}, {"amounts a day", joinComma(words)}}
}
