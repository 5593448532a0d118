// Package smstext reads the message of an SMS request, which the specification wants URL-escaped per RFC 1738 and at
// most 160 characters long.
//
// It does not choose an alphabet or split messages; that is the operator's. Its invariant: a value is decoded whole or
// not at all (decision "sms-text").
package smstext

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// MaxCharacters is the limit of decoded characters in a message (specification, Limits).
const MaxCharacters = 160

// Decode returns the text that the end user is to read, and its length in characters (Unicode code points). If the
// whole value is well-formed RFC 1738, it is decoded; otherwise it is taken literally, which is how clients that do
// not escape are served. "+" is never a space. Well-formed is a value without raw spaces, control characters or
// non-ASCII, in which every "%" is followed by two hexadecimal digits, and which decodes to UTF-8.
func Decode(value string) (text string, characters int) {
	text = value
	if isGraphicASCII(value) {
		// PathUnescape leaves "+" alone, and fails exactly where a "%" lacks its two digits.
		if decoded, err := url.PathUnescape(value); err == nil && utf8.ValidString(decoded) {
			text = decoded
		}
	}
	return text, utf8.RuneCountInString(text)
}

// isGraphicASCII is true where every character is one that RFC 1738 lets stand in a URL: graphic ASCII (section 2.2).
func isGraphicASCII(value string) bool {
	return strings.IndexFunc(value, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}
