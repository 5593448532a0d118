package msisdn

import (
	"strings"

	"mobilegateway/shared/ascii"
)

// The limits of a sender address's digits. Short codes are usual, so the lower limit is 3 (decision "sms-sender"); 15
// is the limit of E.164.
const (
	MinSenderDigits = 3
	MaxSenderDigits = 15
)

// ParseSender reads an SMS sender address of the form tel:+digits, 3 to 15 of them, and returns the digits with the
// calling code. It is not checked as a telephone number (decision "sms-sender"). The scheme must be in lower case.
func ParseSender(text string) (number string, ok bool) {
	number, hasTelScheme := strings.CutPrefix(text, "tel:+")
	if !hasTelScheme || !ascii.IsDigits(number) || len(number) < MinSenderDigits || len(number) > MaxSenderDigits {
		return "", false
	}
	return number, true
}

// Mask writes a number for logs: a star for each character except the last two, if those are digits. Up to two
// characters become stars. The result has at most 20 characters.
func Mask(text string) string {
	const kept, longest = 2, 20
	length := min(len(text), longest)
	if len(text) <= kept || !ascii.IsDigits(text[len(text)-kept:]) {
		return strings.Repeat("*", length)
	}
	return strings.Repeat("*", length-kept) + text[len(text)-kept:]
}
