package msisdn

import "strings"

// The limits of a sender address's digits. Short codes are usual, so that the lower one is 3 (decision "sms-sender");
// 15 is the limit of E.164.
const (
	MinSenderDigits = 3
	MaxSenderDigits = 15
)

// ParseSender reads an SMS sender address of the form tel:+digits, 3 to 15 of them, and returns the digits with the
// calling code. It is not checked as a telephone number (decision "sms-sender"). The scheme is written in lower case.
func ParseSender(text string) (number string, ok bool) {
	number, hasTelScheme := strings.CutPrefix(text, "tel:+")
	if !hasTelScheme || !isDigits(number) || len(number) < MinSenderDigits || len(number) > MaxSenderDigits {
		return "", false
	}
	return number, true
}

// Mask writes a number for logs: a star for each character but the last two. Two characters and fewer become stars
// altogether. Anything longer than 20 characters gives 20.
func Mask(text string) string {
	const kept, longest = 2, 20
	if len(text) <= kept {
		return strings.Repeat("*", len(text))
	}
	for i := len(text) - kept; i < len(text); i++ {
		if text[i] < '0' || text[i] > '9' {
			return strings.Repeat("*", min(len(text), longest))
		}
	}
	return strings.Repeat("*", min(len(text), longest)-kept) + text[len(text)-kept:]
}

// LastFourDigits returns the last four characters if all are digits, else "". They choose the sandbox's outcome.
func LastFourDigits(text string) string {
	const four = 4
	if len(text) < four || !isDigits(text[len(text)-four:]) {
		return ""
	}
	return text[len(text)-four:]
}
