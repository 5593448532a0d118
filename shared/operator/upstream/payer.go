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
// country's currency. The fault is that of RefusedPart, and has no part of either.
func Payer(call operator.PayCall) (digits, amount string, invalid *fault.Fault) {
	country, _ := market.ByAlpha2(call.Country)
	number, err := msisdn.Parse(call.MSISDN, country)
	if err != nil {
		return "", "", RefusedPart("user_msisdn", err.Error()).Fault
	}
	minor, err := money.Parse(call.Amount, country.Exponent)
	if err != nil {
		return "", "", RefusedPart("amount", err.Error()).Fault
	}
	return strings.TrimPrefix(number.E164(), "+"), money.Format(minor, country.Exponent), nil
}
