// Package smstext reads the message of an SMS request, which the specification requires URL-escaped per RFC 1738 and at
// most 160 characters long.
//
// It does not choose an alphabet or split messages; the operator does. Its invariant: either the whole value is
// decoded, or none of it (decision "sms-text").
package smstext

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// MaxCharacters is the limit of decoded characters in a message (specification, Limits).
const MaxCharacters = 160

// Decode returns the text for the end user, and its length in characters (Unicode code points). A well-formed value of
// RFC 1738 is decoded; any other is taken literally, for clients that do not escape. "+" is never a space. A
// well-formed value has no raw spaces, control characters or non-ASCII. Each "%" in it has two hexadecimal digits, and
// it decodes to UTF-8.
func Decode(value string) (text string, characters int) {
	text = value
	if isGraphicASCII(value) {
		// PathUnescape keeps "+", and fails only if a "%" has no two digits.
		if decoded, err := url.PathUnescape(value); err == nil && utf8.ValidString(decoded) {
			text = decoded
		}
	}
	return text, utf8.RuneCountInString(text)
}

// isGraphicASCII is true if RFC 1738 (section 2.2) allows every character in a URL: graphic ASCII.
func isGraphicASCII(value string) bool {
	return strings.IndexFunc(value, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}
