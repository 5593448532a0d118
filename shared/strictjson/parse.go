// Package strictjson reads JSON that has only one interpretation, and keeps the first fault in the order in which the
// caller reads the parts.
//
// It does not know the fields of the specification. Its invariant: Parse accepts only valid UTF-8 with one value,
// without duplicate keys and lone surrogates, of at most MaxDepth levels. Names match with their case and numbers keep
// their text. The caller limits the size of a body.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"mobilegateway/shared/fault"
)

// MaxDepth is the limit of nested objects and arrays, the root included.
const MaxDepth = 16

// BodyPart is the part that faults of the whole body name.
const BodyPart = "body"

// The causes of a refused body, for the log.
var (
	errNotUTF8       = errors.New("not UTF-8")
	errNotJSON       = errors.New("not one JSON value")
	errLoneSurrogate = errors.New("half of a surrogate pair")
	errNotObject     = errors.New("root is not an object")
	errTooDeep       = errors.New("too many levels")
	errDuplicateKey  = errors.New("key twice in an object")
)

// Parse reads a body whose root is an object. Every error is a *fault.Fault of kind InvalidPart. Its part is "body", or
// the path of a duplicate key ("amountTransaction.referenceCode", elements of arrays as "list[0].key").
func Parse(body []byte) (*Reader, error) {
	switch {
	case !utf8.Valid(body):
		return nil, invalidBody(errNotUTF8)
	case !json.Valid(body):
		return nil, invalidBody(errNotJSON)
	case hasLoneSurrogate(body):
		return nil, invalidBody(errLoneSurrogate)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	root, failure := readValue(decoder, "", 0)
	if failure != nil {
		return nil, failure
	}
	object, ok := root.(map[string]any)
	if !ok {
		return nil, invalidBody(errNotObject)
	}
	return &Reader{root: object}, nil
}

func invalidBody(cause error) *fault.Fault {
	return &fault.Fault{Kind: fault.InvalidPart, Part: BodyPart, Cause: cause}
}

// readValue reads the next value of valid JSON. path is its own path, depth the number of levels around it.
func readValue(decoder *json.Decoder, path string, depth int) (any, *fault.Fault) {
	token, err := decoder.Token()
	if err != nil {
		return nil, invalidBody(errNotJSON)
	}
	opening, nested := token.(json.Delim)
	if !nested {
		return token, nil
	}
	if depth == MaxDepth {
		return nil, invalidBody(errTooDeep)
	}
	var value any
	var failure *fault.Fault
	if opening == '{' {
		value, failure = readObject(decoder, path, depth+1)
	} else {
		value, failure = readArray(decoder, path, depth+1)
	}
	if failure != nil {
		return nil, failure
	}
	if _, err := decoder.Token(); err != nil { // the closing bracket, which json.Valid has seen
		return nil, invalidBody(errNotJSON)
	}
	return value, nil
}

func readObject(decoder *json.Decoder, path string, depth int) (map[string]any, *fault.Fault) {
	object := map[string]any{}
	for decoder.More() {
		token, err := decoder.Token()
		key, isKey := token.(string)
		if err != nil || !isKey {
			return nil, invalidBody(errNotJSON)
		}
		keyPath := key
		if path != "" {
			keyPath = path + "." + key
		}
		if _, duplicate := object[key]; duplicate {
			return nil, &fault.Fault{Kind: fault.InvalidPart, Part: keyPath, Cause: errDuplicateKey}
		}
		value, failure := readValue(decoder, keyPath, depth)
		if failure != nil {
			return nil, failure
		}
		object[key] = value
	}
	return object, nil
}

func readArray(decoder *json.Decoder, path string, depth int) ([]any, *fault.Fault) {
	array := []any{}
	for decoder.More() {
		value, failure := readValue(decoder, path+"["+strconv.Itoa(len(array))+"]", depth)
		if failure != nil {
			return nil, failure
		}
		array = append(array, value)
	}
	return array, nil
}

// hasLoneSurrogate finds an escape \uD800 to \uDFFF in valid JSON that is not part of a pair. encoding/json would
// silently replace it with U+FFFD, so that two different texts would become equal.
func hasLoneSurrogate(body []byte) bool {
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
func escapedUnit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	unit, _ := strconv.ParseUint(string(text[2:6]), 16, 16) // valid JSON has four digits here
	return rune(unit)
}
