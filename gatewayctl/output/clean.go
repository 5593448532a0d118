package output

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// TrackedWriter records whether anything was written.
type TrackedWriter struct {
	io.Writer
	Written bool
}

// Write implements io.Writer.
func (b *TrackedWriter) Write(text []byte) (int, error) {
	b.Written = b.Written || len(text) > 0
	return b.Writer.Write(text)
}

// MaskedQuery replaces the query of a URL: a merchant may keep a secret in it.
const MaskedQuery = "?***"

// addressPattern matches an address in a text, from its slashes on: a merchant's may have each character but these.
var addressPattern = regexp.MustCompile(`://[^ \t\r\n]*`)

// addressClosers are the characters behind an address that belong to the text, although an address may have them.
const addressClosers = ",;:.'`>)\\\""

// CleanWriter cleans everything that the tool writes, such as tables, indented JSON and errors. Each Write has whole
// addresses.
type CleanWriter struct {
	Next     io.Writer
	Clean    func(string) string
	Terminal Terminal // that Next leads to, for tables
}

// Write implements io.Writer.
func (w CleanWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.Next, w.Clean(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// CleanText masks the queries of a text, and escapes what a terminal would not show.
func CleanText(text string) string { return EscapeUnprintable(MaskQueries(text)) }

// MaskQueries replaces the query of each URL in a text.
func MaskQueries(text string) string {
	return addressPattern.ReplaceAllStringFunc(text, func(found string) string {
		address := trimClosers(found)
		if before, _, hasQuery := strings.Cut(address, "?"); hasQuery {
			return before + MaskedQuery + found[len(address):]
		}
		return found
	})
}

// trimClosers returns an address without the punctuation of the text behind it. A bracket that it opened stays.
func trimClosers(address string) string {
	for {
		last := len(address) - 1
		isOwn := strings.HasSuffix(address, ")") && strings.Count(address, "(") >= strings.Count(address, ")")
		if last < 0 || isOwn || !strings.Contains(addressClosers, address[last:]) {
			return address
		}
		address = address[:last]
	}
}

// EscapeUnprintable writes control and format characters, such as those that reverse a text's direction, as \u202e.
// JSON keeps its meaning by it. Line ends and tabs stay, and so do bytes that are not UTF-8.
func EscapeUnprintable(text string) string {
	var escaped strings.Builder
	for i, char := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		if char == '\n' || char == '\t' || !reordersText(char) && !unicode.IsControl(char) {
			escaped.WriteString(text[i : i+size])
			continue
		}
		for _, unit := range utf16.Encode([]rune{char}) {
			fmt.Fprintf(&escaped, `\u%04x`, unit)
		}
	}
	return escaped.String()
}

// reordersText reports whether a character is invisible and changes how others are shown: Unicode's format characters,
// its line and paragraph separators, and its variation selectors and private ones.
func reordersText(char rune) bool {
	return unicode.In(char, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Co)
}

// ReplaceControlCharacters removes terminal control sequences from a merchant's text. Format characters are escaped, so
// that the columns of a table stay aligned.
func ReplaceControlCharacters(text string) string {
	return EscapeUnprintable(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '.'
		}
		return r
	}, text))
}
