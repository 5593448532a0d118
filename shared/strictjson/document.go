package strictjson

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonSpaces are the spaces of JSON, jsonEnds all that can follow a number, true, false or null.
const (
	jsonSpaces = " \t\r\n"
	jsonEnds   = ",]}" + jsonSpaces
)

// document is a body that Parse accepted: its text, and its values in their order. An object is followed by its keys
// and values in turn, an array by its elements.
type document struct {
	text  string
	nodes []node
}

// maxBytes keeps positions in 32 bits. Every caller limits its bodies far below.
const maxBytes = 1 << 30

// node is one value or one key. It points into the text, so that a body of many values needs few allocations.
type node struct {
	start uint32 // position of the first byte
	end   uint32 // position after the last byte
	next  uint32 // index of the first node that is not part of this value
	kind  byte   // the first byte: { [ " t f n, a digit or -
}

// isText, isNumber and isNull report the type of a node.
func (n node) isText() bool   { return n.kind == '"' }
func (n node) isNumber() bool { return n.kind == '-' || n.kind >= '0' && n.kind <= '9' }
func (n node) isNull() bool   { return n.kind == 'n' }

// after returns the index of the first node that is not part of a value.
func (d *document) after(index int) int { return int(d.nodes[index].next) }

// raw returns a node as sent.
func (d *document) raw(index int) string { return d.text[d.nodes[index].start:d.nodes[index].end] }

// decodedText returns the text of a key or a text node.
func (d *document) decodedText(index int) string {
	return decodeText(d.text[d.nodes[index].start+1 : d.nodes[index].end-1])
}

// member finds the value of a key in an object; -1 if it is absent.
func (d *document) member(object int, key string) int {
	for i := object + 1; i < d.after(object); i = d.after(i + 1) {
		if equalsDecoded(d.text[d.nodes[i].start+1:d.nodes[i].end-1], key) {
			return i + 1
		}
	}
	return -1
}

// countMembers returns the number of keys of an object.
func (d *document) countMembers(object int) int {
	count := 0
	for i := object + 1; i < d.after(object); i = d.after(i + 1) {
		count++
	}
	return count
}

// countNodes returns the number of values and keys of valid JSON: one, and one more after each comma, colon and opening
// bracket outside texts. An empty object or array has one less.
func countNodes(text string) int {
	count := 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = endOfText(text, i) - 1
		case ',', ':', '{', '[':
			count++
		}
	}
	return count
}

// endOfText returns the position after the text that begins at start.
func endOfText(text string, start int) int {
	for i := start + 1; ; i++ {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
}

// endOfLiteral returns the position after the number, true, false or null that begins at start.
func endOfLiteral(text string, start int) int {
	if length := strings.IndexAny(text[start:], jsonEnds); length >= 0 {
		return start + length
	}
	return len(text)
}

// decodeText decodes the inside of a valid JSON text.
func decodeText(text string) string {
	escape := strings.IndexByte(text, '\\')
	if escape < 0 {
		return text
	}
	decoded := make([]byte, 0, len(text))
	for ; escape >= 0; escape = strings.IndexByte(text, '\\') {
		decoded = append(decoded, text[:escape]...)
		char, length := decodeEscape(text[escape:])
		decoded = utf8.AppendRune(decoded, char)
		text = text[escape+length:]
	}
	return string(append(decoded, text...))
}

// equalsDecoded compares the inside of a valid JSON text with a decoded one, and allocates nothing.
func equalsDecoded(text, decoded string) bool {
	if len(text) < len(decoded) || len(text) > 0 && text[0] != '\\' && !strings.HasPrefix(decoded, text[:1]) {
		return false // most keys end here: an escape is longer than its character
	}
	for {
		escape := strings.IndexByte(text, '\\')
		if escape < 0 {
			return text == decoded
		}
		if !strings.HasPrefix(decoded, text[:escape]) {
			return false
		}
		char, length := decodeEscape(text[escape:])
		found, size := utf8.DecodeRuneInString(decoded[escape:])
		if found != char || size == 0 {
			return false
		}
		text, decoded = text[escape+length:], decoded[escape+size:]
	}
}

// decodeEscape decodes the escape at the begin of a valid text, and returns its length in bytes.
func decodeEscape(text string) (char rune, length int) {
	switch text[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		unit := escapedUnit(text)
		if utf16.IsSurrogate(unit) {
			return utf16.DecodeRune(unit, escapedUnit(text[6:])), 12
		}
		return unit, 6
	}
	return rune(text[1]), 2 // a quote, a slash or a backslash
}

// hasLoneSurrogate finds an escape \uD800 to \uDFFF in valid JSON that is not part of a pair. encoding/json would
// silently replace it with U+FFFD, so that two different texts would become equal.
func hasLoneSurrogate(body string) bool {
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		if unit := escapedUnit(body[i:]); utf16.IsSurrogate(unit) {
			if utf16.DecodeRune(unit, escapedUnit(body[i+6:])) == unicode.ReplacementChar {
				return true
			}
			i += 6
		}
		i++ // the escaped character: valid JSON has one
	}
	return false
}

// escapedUnit returns the UTF-16 unit of valid JSON that begins with an escape \uXXXX, 0 for other JSON.
func escapedUnit(text string) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	unit, _ := strconv.ParseUint(text[2:6], 16, 16) // valid JSON has four digits here
	return rune(unit)
}
