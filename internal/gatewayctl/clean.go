package gatewayctl

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maskedQuery replaces the query of a URL: a merchant may keep a secret in it.
const maskedQuery = "?***"

// urlEnds are the characters that end a URL in a text or in JSON.
const urlEnds = queryEnds + "'`<>\\()"

// queryEnds are the characters that end a query: a merchant's may have each other one.
const queryEnds = " \t\r\n\""

// cleanWriter cleans everything that the tool writes to a terminal: tables, JSON and errors. Each Write has whole URLs.
type cleanWriter struct{ next io.Writer }

// Write implements io.Writer.
func (w cleanWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.next, escapeUnprintable(maskQueries(string(text)))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// maskQueries replaces the query of each URL in a text.
func maskQueries(text string) string {
	var masked strings.Builder
	for {
		start := strings.Index(text, "://")
		if start < 0 {
			break
		}
		end := len(text)
		if length := strings.IndexAny(text[start:], urlEnds); length >= 0 {
			end = start + length
		}
		if strings.Contains(text[start:end], "?") {
			if length := strings.IndexAny(text[end:], queryEnds); length >= 0 {
				end += length
			} else {
				end = len(text)
			}
		}
		address := strings.TrimRight(text[:end], ",;:.'`>)\\")
		if query := strings.IndexByte(address[start:], '?'); query >= 0 {
			masked.WriteString(address[:start+query] + maskedQuery)
		} else {
			masked.WriteString(address)
		}
		masked.WriteString(text[len(address):end])
		text = text[end:]
	}
	return masked.String() + text
}

// escapeUnprintable writes control and format characters, such as those that reverse a text's direction, as \u202e.
// JSON keeps its meaning by it. Line ends and tabs stay, and so do bytes that are not UTF-8.
func escapeUnprintable(text string) string {
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
