// Package money reads and writes amounts as whole minor units: an integer and the currency's exponent.
//
// It has no currencies and no countries (package market has), and never rounds: an amount that has no exact form is an
// error. Its invariant: no float anywhere, and Parse(Format(m, e), e) is m for every positive m that Parse can return.
package money

import (
	"strconv"
	"strings"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/logsafe"
)

const (
	// MaxWholeDigits is the limit of digits before the point (decision "amount-form").
	MaxWholeDigits = 12
	// MaxDecimalDigits is the limit of digits after the point as sent; those beyond the exponent must be zeros.
	MaxDecimalDigits = 48
	// MaxExponent is the largest exponent that keeps every amount inside an int64. ISO 4217 knows 0 to 4.
	MaxExponent = 6
)

// The errors of Parse and ParseMinorUnits. Their texts hold no part of the amount.
var (
	// ErrFormat: not 1 to 12 digits, optionally with a point and 1 to 48 digits. Signs, exponents, spaces, a bare point
	// and digits other than 0 to 9 are refused.
	ErrFormat = logsafe.New("money: not a plain decimal amount")
	// ErrPrecision: more decimals than the currency has, other than zeros.
	ErrPrecision = logsafe.New("money: more decimals than the currency has")
	// ErrNotPositive: the amount is zero.
	ErrNotPositive = logsafe.New("money: amount is not positive")
	// ErrExponent: the exponent is outside 0 to MaxExponent, which is a bug of the caller.
	ErrExponent = logsafe.New("money: exponent out of range")
)

// Parse reads an amount as minor units of a currency with the exponent: "1.5" with exponent 3 is 1500. Decimals beyond
// the exponent are accepted where they are zeros ("500.00" with exponent 0 is 500), leading zeros always. It fails
// with ErrFormat, ErrPrecision, ErrNotPositive or ErrExponent (decision "amount-form").
func Parse(text string, exponent int) (minor int64, err error) {
	if exponent < 0 || exponent > MaxExponent {
		return 0, ErrExponent
	}
	whole, decimals, hasPoint := strings.Cut(text, ".")
	isLong := len(whole) > MaxWholeDigits || len(decimals) > MaxDecimalDigits
	if isLong || !ascii.IsDigits(whole) || hasPoint && !ascii.IsDigits(decimals) {
		return 0, ErrFormat
	}
	significant, excess := decimals, ""
	if len(decimals) > exponent {
		significant, excess = decimals[:exponent], decimals[exponent:]
	}
	if strings.Trim(excess, "0") != "" {
		return 0, ErrPrecision
	}
	// At most 12 + MaxExponent digits: always inside an int64.
	minor, err = strconv.ParseInt(whole+significant+strings.Repeat("0", exponent-len(significant)), 10, 64)
	if err != nil {
		return 0, ErrFormat
	}
	if minor == 0 {
		return 0, ErrNotPositive
	}
	return minor, nil
}

// ParseMinorUnits reads a charge amount of DR Congo: a whole number of units. 100 units are 1 USD, so a unit is a US
// cent: "15" and "15.00" are 15, which is 0.15 USD (specification, Limits; decision "charge-odc-unit"). It fails as
// Parse does; a part of a unit is ErrPrecision.
func ParseMinorUnits(text string) (units int64, err error) { return Parse(text, 0) }

// Format writes minor units with exactly exponent decimals: 1500 with exponent 3 is "1.500". A negative exponent
// counts as 0. Negative amounts, which Parse never returns, are written with a leading "-".
func Format(minor int64, exponent int) string {
	text := strconv.FormatInt(minor, 10)
	sign := ""
	if minor < 0 {
		sign, text = "-", text[1:]
	}
	if exponent <= 0 {
		return sign + text
	}
	if len(text) <= exponent {
		text = strings.Repeat("0", exponent+1-len(text)) + text
	}
	point := len(text) - exponent
	return sign + text[:point] + "." + text[point:]
}
