// Package market is the table of the countries that the gateway serves. It is the only place with a country's codes,
// its currency and exponent, its unit rule and its number plan. A new country is a row.
//
// It contains no merchants or operators. Its invariant: every row is complete, and no two rows share a code.
package market

import (
	"slices"
	"strings"
)

// Country is one row of the specification's table of authorized countries, with what ISO 3166, ISO 4217 and ITU-T
// E.164 add to it.
type Country struct {
	// Name is the English name as the specification writes it.
	Name string
	// Alpha2 is the ISO 3166-1 alpha-2 code in upper case, the value of the country-code header.
	Alpha2 string
	// MCO is the operator code of the specification's table, the value of X-Operator-MCO.
	MCO string
	// Currency is the ISO 4217 code of the charge currency.
	Currency string
	// Exponent is the number of decimals of Currency in ISO 4217: minor units are 10^-Exponent.
	Exponent int
	// ChargesInMinorUnits is true where a charge amount counts whole minor units (DR Congo: "15" is 0.15 USD).
	// It applies to charges only (specification, Limits; decision "charge-odc-unit").
	ChargesInMinorUnits bool
	// CallingCode is the E.164 country code without "+".
	CallingCode string
	// NationalLengths are the lengths of a national (significant) number, without trunk prefix.
	NationalLengths []int
	// KeepsLeadingZero is true where a leading zero is part of the national number, also after the calling code (Ivory
	// Coast since 2021: 01, 05, 07; Burkina Faso: 01 to 07). Elsewhere no national number begins with zero, and a zero
	// before it is a trunk prefix: official in DR Congo, a habit in the others.
	KeepsLeadingZero bool
}

// countries are in the order of the specification's table.
var countries = []Country{
	{Name: "Ivory Coast", Alpha2: "CI", MCO: "OCI", Currency: "XOF", Exponent: 0,
		CallingCode: "225", NationalLengths: []int{10}, KeepsLeadingZero: true},
	{Name: "DR Congo", Alpha2: "CD", MCO: "ODC", Currency: "USD", Exponent: 2,
		ChargesInMinorUnits: true, CallingCode: "243", NationalLengths: []int{9}},
	{Name: "Cameroon", Alpha2: "CM", MCO: "OCM", Currency: "XAF", Exponent: 0,
		CallingCode: "237", NationalLengths: []int{9}},
	{Name: "Senegal", Alpha2: "SN", MCO: "OSN", Currency: "XOF", Exponent: 0,
		CallingCode: "221", NationalLengths: []int{9}},
	{Name: "Tunisia", Alpha2: "TN", MCO: "OTN", Currency: "TND", Exponent: 3,
		CallingCode: "216", NationalLengths: []int{8}},
	{Name: "Burkina Faso", Alpha2: "BF", MCO: "OBF", Currency: "XOF", Exponent: 0,
		CallingCode: "226", NationalLengths: []int{8}, KeepsLeadingZero: true},
}

// All returns the countries in the specification's order.
func All() []Country { return slices.Clone(countries) }

// ByAlpha2 finds a country by its ISO 3166-1 alpha-2 code, compared without case (decision "pay-country-code").
func ByAlpha2(code string) (Country, bool) {
	return find(func(c Country) bool { return strings.EqualFold(c.Alpha2, code) })
}

// ByMCO finds a country by its operator code: the table's value, or "O" and the alpha-2 code, which the
// specification states too (DR Congo: ODC and OCD; decision "sms-mco"). The comparison is case-sensitive.
func ByMCO(code string) (Country, bool) {
	return find(func(c Country) bool { return code == c.MCO || code == "O"+c.Alpha2 })
}

// Alpha2s lists the alpha-2 codes in the specification's order, as the valid values of country-code.
func Alpha2s() []string {
	return column(func(c Country) string { return c.Alpha2 })
}

// MCOs lists the operator codes in the specification's order, as the valid values of X-Operator-MCO.
func MCOs() []string {
	return column(func(c Country) string { return c.MCO })
}

func column(value func(Country) string) []string {
	values := make([]string, len(countries))
	for i, c := range countries {
		values[i] = value(c)
	}
	return values
}

// CurrencyExponent is the number of decimals of one of the countries' currencies; false for any other.
func CurrencyExponent(currency string) (exponent int, found bool) {
	c, found := find(func(c Country) bool { return c.Currency == currency })
	return c.Exponent, found
}

func find(match func(Country) bool) (Country, bool) {
	if i := slices.IndexFunc(countries, match); i >= 0 {
		return countries[i], true
	}
	return Country{}, false
}

// SenderPrefix is the start of an SMS senderAddress of the country: "tel:+" and the calling code.
func (c Country) SenderPrefix() string { return "tel:+" + c.CallingCode }
