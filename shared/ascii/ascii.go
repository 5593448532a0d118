// Package ascii has the sets of ASCII characters, and the check that a text has no others.
package ascii

import "strings"

// The characters of a set. The lower-case letters are the first 26.
const (
	Digits  = "0123456789"
	Letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// ConsistsOf reports whether a text has only characters of a set. It is false for an empty text.
func ConsistsOf(text, set string) bool { return text != "" && strings.Trim(text, set) == "" }

// IsDigits reports whether a text has only digits. It is false for an empty text.
func IsDigits(text string) bool { return ConsistsOf(text, Digits) }
