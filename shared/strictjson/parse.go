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
		i++ // the escaped character: valid JSON has one
		if body[i] != 'u' {
			continue
		}
		unit := parseHex4(body[i+1 : i+5])
		i += 4
		if unit < 0xD800 || unit > 0xDFFF {
			continue
		}
		if unit >= 0xDC00 || !startsWithLowSurrogate(body[i+1:]) {
			return true
		}
		i += 6
	}
	return false
}

// startsWithLowSurrogate reports whether the bytes begin with an escape \uDC00 to \uDFFF.
func startsWithLowSurrogate(rest []byte) bool {
	if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
		return false
	}
	unit := parseHex4(rest[2:6])
	return unit >= 0xDC00 && unit <= 0xDFFF
}

// parseHex4 reads four hexadecimal digits, which valid JSON guarantees.
func parseHex4(digits []byte) int {
	unit, err := strconv.ParseUint(string(digits), 16, 32)
	if err != nil {
		return 0
	}
	return int(unit)
}
