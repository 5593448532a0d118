// Package strictjson reads the JSON of a request so that no two readers can understand it differently, and collects
// the first fault in the order in which the caller asks for the parts.
//
// It knows no field of the specification. Its invariant: whatever Parse accepts has one reading: valid UTF-8, one
// value, no key twice in an object, no half of a surrogate pair, at most MaxDepth levels; names match with their case
// and numbers keep their text. The size of a body is limited by whoever receives it.
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

// Parse reads a body whose root is an object. Every error is a *fault.Fault of kind Invalid: its part is "body", or
// for a key that stands twice in its object the path of the key ("amountTransaction.referenceCode", elements of arrays
// as "list[0].key").
func Parse(body []byte) (*Reader, error) {
	cause := checkWellFormed(body)
	if cause != nil {
		return nil, &fault.Fault{Kind: fault.InvalidPart, Part: BodyPart, Cause: cause}
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	root, failure := readValue(decoder, "", 0)
	if failure != nil {
		return nil, failure
	}
	object, ok := root.(map[string]any)
	if !ok {
		return nil, &fault.Fault{Kind: fault.InvalidPart, Part: BodyPart, Cause: errNotObject}
	}
	return &Reader{root: object}, nil
}

// checkWellFormed checks what can be said without building anything.
func checkWellFormed(body []byte) error {
	if !utf8.Valid(body) {
		return errNotUTF8
	}
	if !json.Valid(body) {
		return errNotJSON
	}
	if hasLoneSurrogate(body) {
		return errLoneSurrogate
	}
	return nil
}

// readValue reads the next value of valid JSON. path is its own path, depth the number of levels around it.
func readValue(decoder *json.Decoder, path string, depth int) (any, *fault.Fault) {
	token, err := decoder.Token()
	if err != nil {
		return nil, &fault.Fault{Kind: fault.InvalidPart, Part: BodyPart, Cause: errNotJSON}
	}
	opening, nested := token.(json.Delim)
	if !nested {
		return token, nil
	}
	if depth == MaxDepth {
		return nil, &fault.Fault{Kind: fault.InvalidPart, Part: BodyPart, Cause: errTooDeep}
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
	_, err = decoder.Token() // the closing bracket: json.Valid has seen it
	if err != nil {
		return nil, &fault.Fault{Kind: fault.InvalidPart, Part: BodyPart, Cause: errNotJSON}
	}
	return value, nil
}

func readObject(decoder *json.Decoder, path string, depth int) (map[string]any, *fault.Fault) {
	object := map[string]any{}
	for decoder.More() {
		token, err := decoder.Token()
		key, isKey := token.(string)
		if err != nil || !isKey {
			return nil, &fault.Fault{Kind: fault.InvalidPart, Part: BodyPart, Cause: errNotJSON}
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

// hasLoneSurrogate finds an escape \uD800 to \uDFFF in valid JSON that is not one of a pair. encoding/json would silently
// put U+FFFD in its place, and two different texts would become one.
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

// startsWithLowSurrogate is true where the bytes begin with an escape \uDC00 to \uDFFF.
func startsWithLowSurrogate(rest []byte) bool {
	if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
		return false
	}
	unit := parseHex4(rest[2:6])
	return unit >= 0xDC00 && unit <= 0xDFFF
}

// parseHex4 reads four hexadecimal digits that valid JSON has there.
func parseHex4(digits []byte) int {
	unit, err := strconv.ParseUint(string(digits), 16, 32)
	if err != nil {
		return 0
	}
	return int(unit)
}
