package strictjson

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"mobilegateway/shared/fault"
)

// MaxNumberCharacters is the limit of an amount's text, far above what package money accepts.
const MaxNumberCharacters = 64

// The causes of a refused part, for the log: what is wrong with it, never its value.
var (
	errType    = errors.New("wrong JSON type")
	errEmpty   = errors.New("empty")
	errLong    = errors.New("too many characters")
	errControl = errors.New("control character")
	errItems   = errors.New("number of items")
)

// Reader gives out the parts of a body and keeps the first fault. Callers ask for the parts in the specification's
// order, go on after a fault, and look at Fault once at the end. A path names object keys joined by points,
// "amountTransaction.endUserId", and matches with its case.
//
// For every method: where a parent of the part is absent or null, the part is absent; where a parent is something
// other than an object, the fault is Invalid and names the parent. A Reader belongs to one goroutine.
type Reader struct {
	root  map[string]any
	first *fault.Fault
}

// Text returns a required text of 1 to limit characters (Unicode code points) without control characters. Absent and
// null are Missing; another type, an empty, a longer text and control characters are Invalid. After a fault it is "".
func (r *Reader) Text(path string, limit int) string {
	value, ok := r.required(path)
	if !ok {
		return ""
	}
	return r.text(path, value, limit, false)
}

// MultilineText is Text that also accepts tabulators and line ends, for the message of an SMS.
func (r *Reader) MultilineText(path string, limit int) string {
	value, ok := r.required(path)
	if !ok {
		return ""
	}
	return r.text(path, value, limit, true)
}

// OptionalText returns a text that may be absent or null: "", false. A text that is there follows the rule of Text, so
// that an empty one is Invalid: it must never pass for a key. After a fault it is "", false.
func (r *Reader) OptionalText(path string, limit int) (text string, present bool) {
	value, present, failure := r.find(path)
	if failure != nil {
		r.Fail(failure)
		return "", false
	}
	if !present {
		return "", false
	}
	text = r.text(path, value, limit, false)
	return text, text != ""
}

// Empty tells that the part is there as an empty text. It records no fault.
func (r *Reader) Empty(path string) bool {
	value, present, failure := r.find(path)
	return failure == nil && present && value == ""
}

// Number returns a required amount, sent as a JSON number or as a text: its characters, and the JSON value to echo.
// It says nothing about the form of the number but that it has 1 to MaxNumberCharacters characters, none of them a
// control character; package money reads it. Absent and null are Missing, everything else is Invalid.
func (r *Reader) Number(path string) (text string, raw json.RawMessage) {
	value, ok := r.required(path)
	if !ok {
		return "", nil
	}
	if number, isNumber := value.(json.Number); isNumber {
		if len(number) > MaxNumberCharacters {
			r.invalid(path, errLong)
			return "", nil
		}
		return number.String(), json.RawMessage(number.String())
	}
	text = r.text(path, value, MaxNumberCharacters, false)
	if text == "" {
		return "", nil
	}
	return text, Marshal(text)
}

// OptionalNumber returns an amount that may be absent or null: "". One that is there follows the rule of Number.
func (r *Reader) OptionalNumber(path string) string {
	_, present, failure := r.find(path)
	if failure != nil {
		r.Fail(failure)
		return ""
	}
	if !present {
		return ""
	}
	text, _ := r.Number(path)
	return text
}

// Texts returns a required array of 1 to maxItems texts, each by the rule of Text. Absent and null are Missing,
// everything else is Invalid and names the array. After a fault it is nil.
func (r *Reader) Texts(path string, maxItems, limit int) []string {
	value, ok := r.required(path)
	if !ok {
		return nil
	}
	items, ok := value.([]any)
	if !ok {
		r.invalid(path, errType)
		return nil
	}
	if len(items) == 0 || len(items) > maxItems {
		r.invalid(path, errItems)
		return nil
	}
	texts := make([]string, 0, len(items))
	for _, item := range items {
		text, cause := checked(item, limit, false)
		if cause != nil {
			r.invalid(path, cause)
			return nil
		}
		texts = append(texts, text)
	}
	return texts
}

// Object tells whether the part is there and an object. Absent and null are false without a fault; another type is
// false and Invalid.
func (r *Reader) Object(path string) bool {
	value, present, failure := r.find(path)
	if failure != nil {
		r.Fail(failure)
		return false
	}
	if !present {
		return false
	}
	_, ok := value.(map[string]any)
	if !ok {
		r.invalid(path, errType)
	}
	return ok
}

// Fail records a fault of the caller's own rules, if it is the first. nil changes nothing.
func (r *Reader) Fail(f *fault.Fault) {
	if r.first == nil {
		r.first = f
	}
}

// Fault is the first recorded fault, nil if there is none. Compare it with nil before it becomes an error.
func (r *Reader) Fault() *fault.Fault { return r.first }

// Canonical writes the whole body in a form that only its meaning decides: keys sorted, texts decoded, no spaces,
// numbers as they were written. Top-level keys named in without are left out. It is what fingerprints are made of
// (decision "fingerprint").
func (r *Reader) Canonical(without ...string) []byte {
	kept := make(map[string]any, len(r.root))
	for key, value := range r.root {
		kept[key] = value
	}
	for _, key := range without {
		delete(kept, key)
	}
	return Marshal(kept)
}

// required finds a part, and records Missing where it is absent or null.
func (r *Reader) required(path string) (value any, ok bool) {
	value, present, failure := r.find(path)
	if failure != nil {
		r.Fail(failure)
		return nil, false
	}
	if !present {
		r.Fail(fault.In(fault.Missing, path))
		return nil, false
	}
	return value, true
}

// find follows a path. null counts as absent, everywhere.
func (r *Reader) find(path string) (value any, present bool, failure *fault.Fault) {
	value = any(r.root)
	walked := 0
	for rest, more := path, true; more; {
		var key string
		object, ok := value.(map[string]any)
		if !ok {
			parent := strings.TrimSuffix(path[:walked], ".")
			return nil, false, &fault.Fault{Kind: fault.Invalid, Part: parent, Cause: errType}
		}
		key, rest, more = strings.Cut(rest, ".")
		walked += len(key) + 1
		value = object[key]
		if value == nil {
			return nil, false, nil
		}
	}
	return value, true, nil
}

// text checks a text and records Invalid; "" after a fault.
func (r *Reader) text(path string, value any, limit int, multiline bool) string {
	text, cause := checked(value, limit, multiline)
	if cause != nil {
		r.invalid(path, cause)
		return ""
	}
	return text
}

// invalid records that a part breaks its rule.
func (r *Reader) invalid(path string, cause error) {
	r.Fail(&fault.Fault{Kind: fault.Invalid, Part: path, Cause: cause})
}

// checked is the rule of Text.
func checked(value any, limit int, multiline bool) (string, error) {
	text, ok := value.(string)
	if !ok {
		return "", errType
	}
	if text == "" {
		return "", errEmpty
	}
	if utf8.RuneCountInString(text) > limit {
		return "", errLong
	}
	for _, char := range text {
		if unicode.IsControl(char) && !(multiline && (char == '\n' || char == '\r' || char == '\t')) {
			return "", errControl
		}
	}
	return text, nil
}
