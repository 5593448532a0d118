package statement

import (
	"errors"
	"fmt"
	"strings"

	"mobilegateway/shared/money"
)

// The decimal marks of a mapping and of --decimal.
const (
	DecimalPoint = "point"
	DecimalComma = "comma"
)

// groupMarks are the signs between groups of three digits, beside the mark that is not the decimal one: spaces as
// spreadsheets write them, and the apostrophe.
const groupMarks = " \u00a0\u202f\u2009'\u2019"

var (
	errAmbiguous = errors.New("has a mark that could separate decimals or thousands: give --decimal point or " +
		"--decimal comma, or \"decimal\" in the mapping")
	errRounded   = errors.New("was rounded by a spreadsheet: get the file again, and open it in no spreadsheet")
	errNegative  = errors.New("is negative: name the type of such rows in \"types\" of the mapping")
	errNotAmount = errors.New("is not an amount")
	errGroups    = errors.New("has a mark that is neither the decimal one nor between groups of three digits")
)

// parseAmount reads an amount as minor units. Zero is 0 and no error.
func parseAmount(text, decimal string, exponent int) (int64, error) {
	plain, err := plainDecimal(text, decimal)
	if err != nil {
		return 0, err
	}
	minor, err := money.Parse(plain, exponent)
	switch {
	case errors.Is(err, money.ErrNotPositive):
		return 0, nil
	case errors.Is(err, money.ErrPrecision):
		return 0, fmt.Errorf("has more decimals than the %d of its currency", exponent)
	case err != nil:
		return 0, errNotAmount
	}
	return minor, nil
}

// plainDecimal returns an amount with a decimal point and without separators of thousands.
func plainDecimal(text, decimal string) (string, error) {
	isMark := func(r rune) bool { return strings.ContainsRune(groupMarks+".,", r) }
	switch rest := strings.TrimFunc(strings.TrimFunc(text, isMark), isDigit); {
	case strings.HasPrefix(text, "-"), strings.HasPrefix(text, "\u2212"), strings.HasPrefix(text, "("):
		return "", errNegative
	case rest != "" && strings.TrimFunc(rest, func(r rune) bool { return isMark(r) || isDigit(r) }) != "":
		if strings.ContainsAny(text, "eE") && strings.Trim(text, "0123456789.,eE+-") == "" {
			return "", errRounded
		}
		return "", errNotAmount
	}
	if decimal == "" {
		return undeclared(text)
	}
	mark, groups := ".", ","+groupMarks
	if decimal == DecimalComma {
		mark, groups = ",", "."+groupMarks
	}
	whole, decimals, hasMark := strings.Cut(text, mark)
	whole, err := joinGroups(whole, groups)
	switch {
	case err != nil:
		return "", err
	case strings.ContainsFunc(decimals, isMark):
		return "", errGroups
	case hasMark:
		return whole + "." + decimals, nil
	}
	return whole, nil
}

// undeclared reads an amount without a declared decimal mark: digits, or a point that separates no three digits.
func undeclared(text string) (string, error) {
	whole, decimals, hasPoint := strings.Cut(text, ".")
	const group = 3
	switch {
	case strings.ContainsAny(text, ",") || strings.Contains(decimals, "."), hasPoint && len(decimals) == group:
		return "", errAmbiguous
	case strings.ContainsAny(whole+decimals, groupMarks):
		return "", errAmbiguous
	}
	return text, nil
}

// joinGroups removes the separators of thousands: one sign between groups of three digits.
func joinGroups(whole, marks string) (string, error) {
	at := strings.IndexAny(whole, marks)
	if at < 0 {
		return whole, nil
	}
	var mark string
	for _, r := range whole[at:] {
		mark = string(r)
		break
	}
	groups := strings.Split(whole, mark)
	const first, other = 3, 3
	for i, g := range groups {
		if strings.TrimFunc(g, isDigit) != "" || i == 0 && (g == "" || len(g) > first) || i > 0 && len(g) != other {
			return "", errGroups
		}
	}
	return strings.Join(groups, ""), nil
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// FeeTerms are the fee that a contract with the operator names.
type FeeTerms struct {
	BasisPoints int64  `json:"basis_points"` // hundredths of a percent of the amount
	Fixed       int64  `json:"fixed_minor"`  // minor units of the amount's currency
	Rounding    string `json:"rounding"`     // up, down or half-up, to whole minor units
}

// The ways to round a fee.
const (
	roundUp     = "up"
	roundDown   = "down"
	roundHalfUp = "half-up"
)

const basis = 10_000 // basis points of one

// of returns the fee of an amount in minor units. An amount has at most 18 digits, so its parts stay inside an int64.
func (f *FeeTerms) of(minor int64) int64 {
	whole, rest := minor/basis*f.BasisPoints, minor%basis*f.BasisPoints
	switch f.Rounding {
	case roundUp:
		rest += basis - 1
	case roundHalfUp:
		rest += basis / 2
	}
	return whole + rest/basis + f.Fixed
}
