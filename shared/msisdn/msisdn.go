// Package msisdn reads the telephone numbers of payers and the sender addresses of SMS, and masks numbers for logs.
//
// It checks the form and the length against a country's number plan, not whether a number is assigned. Its invariant: a
// Number is complete, so that two forms of one number give equal Numbers.
package msisdn

import (
	"slices"
	"strings"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/market"
)

// The errors of Parse. Their texts hold no part of the number.
var (
	// ErrFormat: something other than digits after an optional leading "+".
	ErrFormat = logsafe.New("msisdn: not digits with an optional leading plus")
	// ErrCountry: an international number of another country.
	ErrCountry = logsafe.New("msisdn: calling code of another country")
	// ErrLength: no national number of the country has this length, or this leading zero.
	ErrLength = logsafe.New("msisdn: not a number of the country's plan")
)

// Number is a subscriber's number. The zero value means none. Numbers compare with ==.
type Number struct{ e164 string }

// E164 writes the number in the international form of ITU-T E.164: "+", calling code, national number.
func (n Number) E164() string { return n.e164 }

// Parse reads a number of country c in the international form, with "+", "00" or the bare calling code, or in the
// national form. The national form may have one trunk zero, unless the country's own numbers begin with zero
// (market.Country.KeepsLeadingZero): a further zero is then an error. Spaces, hyphens and parentheses are not accepted
// (decision "msisdn-forms"). It fails with ErrFormat, ErrCountry or ErrLength.
func Parse(text string, c market.Country) (Number, error) {
	rest, international := strings.CutPrefix(text, "+")
	if !ascii.IsDigits(rest) {
		return Number{}, ErrFormat
	}
	if !international {
		rest, international = strings.CutPrefix(rest, "00")
	}
	national := rest
	withoutCode, hasCode := strings.CutPrefix(rest, c.CallingCode)
	withoutZero, hasZero := strings.CutPrefix(rest, "0")
	switch {
	case international && !hasCode:
		return Number{}, ErrCountry
	case international || hasCode && matchesNumberPlan(withoutCode, c):
		national = withoutCode
	case hasZero && !c.KeepsLeadingZero:
		national = withoutZero
	}
	if !matchesNumberPlan(national, c) {
		return Number{}, ErrLength
	}
	return Number{e164: "+" + c.CallingCode + national}, nil
}

// matchesNumberPlan is true for a national number with a length of the country, and with a leading zero only where
// numbers have one.
func matchesNumberPlan(national string, c market.Country) bool {
	if strings.HasPrefix(national, "0") && !c.KeepsLeadingZero {
		return false
	}
	return slices.Contains(c.NationalLengths, len(national))
}
