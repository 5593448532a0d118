package strictjson

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Canonical writes the body in a form that depends only on its meaning: sorted keys, decoded texts, no spaces, and
// numbers as sent. It omits the excluded top-level keys. Fingerprints are made of it (decision "fingerprint"), so its
// form never changes: it is what encoding/json writes for the same maps, without HTML escaping.
func (r *Reader) Canonical(excludedKeys ...string) []byte {
	return r.appendObject(make([]byte, 0, len(r.text)), r.root, excludedKeys)
}

// appendValue appends the canonical form of a value.
func (d *document) appendValue(to []byte, index int) []byte {
	switch d.nodes[index].kind {
	case '{':
		return d.appendObject(to, index, nil)
	case '[':
		to = append(to, '[')
		for i := index + 1; i < d.after(index); i = d.after(i) {
			if i > index+1 {
				to = append(to, ',')
			}
			to = d.appendValue(to, i)
		}
		return append(to, ']')
	case '"':
		return appendText(to, d.decodedText(index))
	}
	return append(to, d.raw(index)...)
}

func (d *document) appendObject(to []byte, object int, excludedKeys []string) []byte {
	keys, values := make([]string, 0, d.countMembers(object)), make(map[string]int, d.countMembers(object))
	for i := object + 1; i < d.after(object); i = d.after(i + 1) {
		if key := d.decodedText(i); !slices.Contains(excludedKeys, key) {
			keys, values[key] = append(keys, key), i+1
		}
	}
	slices.Sort(keys) // each is there once, because the parser refuses duplicates
	to = append(to, '{')
	for i, key := range keys {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(appendText(to, key), ':')
		to = d.appendValue(to, values[key])
	}
	return append(to, '}')
}

// appendText appends a JSON text. Only the characters that must be escaped are escaped, and U+2028 and U+2029.
func appendText(to []byte, text string) []byte {
	const hexDigits = "0123456789abcdef"
	to = append(to, '"')
	for _, char := range text {
		switch short := strings.IndexRune("\b\f\n\r\t\"\\", char); {
		case short >= 0:
			to = append(to, '\\', `bfnrt"\`[short])
		case char < ' ':
			to = append(to, `\u00`...)
			to = append(to, hexDigits[char>>4], hexDigits[char&0xf])
		case char == '\u2028' || char == '\u2029':
			to = append(to, `\u202`...)
			to = append(to, hexDigits[char&0xf])
		default:
			to = utf8.AppendRune(to, char)
		}
	}
	return append(to, '"')
}
