package upstream

import (
	"strings"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/shared/msisdn"
	"mobilegateway/shared/operator"
)

// Payer returns the payer's number as the digits of E.164, without "+", and the amount with exactly the decimals of the
// country's currency, which the call must have. The fault names the merchant's part that breaks a rule.
func Payer(call operator.PayCall) (digits, amount string, invalid *fault.Fault) {
	country, _ := market.ByAlpha2(call.Country)
	number, err := msisdn.Parse(call.MSISDN, country)
	if err != nil {
		return "", "", fault.BrokenRule("user_msisdn", err)
	}
	minor, err := money.Parse(call.Amount, country.Exponent)
	if err != nil {
		return "", "", fault.BrokenRule("amount", err)
	}
	if call.Currency != country.Currency {
		return "", "", fault.NotAllowed("currency", []string{country.Currency})
	}
	return strings.TrimPrefix(number.E164(), "+"), money.Format(minor, country.Exponent), nil
}
