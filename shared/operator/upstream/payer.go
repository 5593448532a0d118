package upstream

import (
	"errors"
	"strings"

	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/shared/msisdn"
	"mobilegateway/shared/operator"
)

// Payer returns the payer's number as the digits of E.164, without "+", and the amount with exactly the decimals of the
// country's currency. The error has no part of either.
func Payer(call operator.PayCall) (digits, amount string, err error) {
	country, known := market.ByAlpha2(call.Country)
	if !known {
		return "", "", errors.New("the payment's country is unknown")
	}
	number, err := msisdn.Parse(call.MSISDN, country)
	if err != nil {
		return "", "", err
	}
	minor, err := money.Parse(call.Amount, country.Exponent)
	if err != nil {
		return "", "", err
	}
	return strings.TrimPrefix(number.E164(), "+"), money.Format(minor, country.Exponent), nil
}
