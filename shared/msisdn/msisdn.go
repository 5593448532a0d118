// Package msisdn reads the telephone numbers of purchasers and the sender addresses of SMS, and masks numbers for logs.
//
// It checks the form and the length that a country's number plan gives, not whether a number is assigned. Its
// invariant: a Number is complete, so that two ways of writing one number give equal Numbers.
package msisdn

import (
	"errors"
	"strings"

	"mobilegateway/shared/market"
)

// The errors of Parse. Their texts hold no part of the number.
var (
	// ErrFormat: something other than digits after an optional leading "+".
	ErrFormat = errors.New("msisdn: not digits with an optional leading plus")
	// ErrCountry: an international number of another country.
	ErrCountry = errors.New("msisdn: calling code of another country")
	// ErrLength: no national number of the country has this length, or this leading zero.
	ErrLength = errors.New("msisdn: not a number of the country's plan")
)

// Number is a subscriber's number. The zero value is no number. Numbers compare with ==.
type Number struct {
	callingCode string
	national    string
}

// E164 writes the number in the international form of ITU-T E.164: "+", calling code, national number.
func (n Number) E164() string { return "+" + n.callingCode + n.national }

// National writes the national (significant) number: no trunk zero, but with the leading zero that belongs to the
// number itself in Ivory Coast and Burkina Faso.
func (n Number) National() string { return n.national }

// Parse reads a number of country c. It accepts the international form with "+", "00" or the bare calling code, and
// the national form; the latter also with one trunk zero, but for countries whose own numbers begin with zero
// (market.Country.KeepsLeadingZero), where a further zero can only be a slip. Spaces, hyphens and parentheses are not
// accepted (decision "msisdn-forms"). It fails with ErrFormat, ErrCountry or ErrLength.
func Parse(text string, c market.Country) (Number, error) {
	rest, international := strings.CutPrefix(text, "+")
	if !isDigits(rest) {
		return Number{}, ErrFormat
	}
	if !international {
		rest, international = strings.CutPrefix(rest, "00")
	}
	national := rest
	if international {
		remainder, sameCountry := strings.CutPrefix(rest, c.CallingCode)
		if !sameCountry {
			return Number{}, ErrCountry
		}
		national = remainder
	} else if remainder, hasCallingCode := strings.CutPrefix(rest, c.CallingCode); hasCallingCode && matchesNumberPlan(remainder, c) {
		national = remainder
	} else if remainder, hasTrunkZero := strings.CutPrefix(rest, "0"); hasTrunkZero && !c.KeepsLeadingZero {
		national = remainder
	}
	if !matchesNumberPlan(national, c) {
		return Number{}, ErrLength
	}
	return Number{callingCode: c.CallingCode, national: national}, nil
}

// matchesNumberPlan is true for a national number of a length of the country, and without a leading zero where none begins so.
func matchesNumberPlan(national string, c market.Country) bool {
	if strings.HasPrefix(national, "0") && !c.KeepsLeadingZero {
		return false
	}
	for _, length := range c.NationalLengths {
		if len(national) == length {
			return true
		}
	}
	return false
}

// isDigits is true for at least one digit, and nothing else.
func isDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}
