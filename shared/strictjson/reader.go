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
	errWrongType        = errors.New("wrong JSON type")
	errEmpty            = errors.New("empty")
	errTooLong          = errors.New("too long")
	errControlCharacter = errors.New("control character")
	errItemCount        = errors.New("number of items")
)

// Reader gives out the parts of a body and keeps the first fault. Callers ask for the parts in the specification's
// order, go on after a fault, and look at Fault once at the end. A path names object keys joined by points,
// "amountTransaction.endUserId", and matches with its case.
//
// For every method: where a parent of the part is absent or null, the part is absent; where a parent is something
// other than an object, the fault is Invalid and names the parent. A Reader belongs to one goroutine.
type Reader struct {
	root       map[string]any
	firstFault *fault.Fault
}

// Text returns a required text of 1 to limit characters (Unicode code points) without control characters. Absent and
// null are Missing; another type, an empty, a longer text and control characters are Invalid. After a fault it is "".
func (r *Reader) Text(path string, limit int) string {
	value, ok := r.requirePart(path)
	if !ok {
		return ""
	}
	return r.validText(path, value, limit, false)
}

// MultilineText is Text that also accepts tabulators and line ends, for the message of an SMS.
func (r *Reader) MultilineText(path string, limit int) string {
	value, ok := r.requirePart(path)
	if !ok {
		return ""
	}
	return r.validText(path, value, limit, true)
}

// UnicodeText returns a required text of 1 to maxBytes bytes of UTF-8 that may have any characters, control characters
// included. Absent and null are Missing; another type, an empty and a longer text are Invalid. After a fault it is "".
func (r *Reader) UnicodeText(path string, maxBytes int) string {
	value, ok := r.requirePart(path)
	if !ok {
		return ""
	}
	text, isText := value.(string)
	switch {
	case !isText:
		r.recordInvalid(path, errWrongType)
	case text == "":
		r.recordInvalid(path, errEmpty)
	case len(text) > maxBytes:
		r.recordInvalid(path, errTooLong)
	default:
		return text
	}
	return ""
}

// OptionalText returns a text that may be absent or null: "", false. A text that is there follows the rule of Text, so
// that an empty one is Invalid: it must never pass for a key. After a fault it is "", false.
func (r *Reader) OptionalText(path string, limit int) (text string, present bool) {
	value, present, failure := r.lookUp(path)
	if failure != nil {
		r.RecordFault(failure)
		return "", false
	}
	if !present {
		return "", false
	}
	text = r.validText(path, value, limit, false)
	return text, text != ""
}

// IsEmptyText tells that the part is there as an empty text. It records no fault.
func (r *Reader) IsEmptyText(path string) bool {
	value, present, failure := r.lookUp(path)
	return failure == nil && present && value == ""
}

// Number returns a required amount, sent as a JSON number or as a text: its characters, and the JSON value to echo.
// It says nothing about the form of the number but that it has 1 to MaxNumberCharacters characters, none of them a
// control character; package money reads it. Absent and null are Missing, everything else is Invalid.
func (r *Reader) Number(path string) (text string, raw json.RawMessage) {
	value, ok := r.requirePart(path)
	if !ok {
		return "", nil
	}
	if number, isNumber := value.(json.Number); isNumber {
		if len(number) > MaxNumberCharacters {
			r.recordInvalid(path, errTooLong)
			return "", nil
		}
		return number.String(), json.RawMessage(number.String())
	}
	text = r.validText(path, value, MaxNumberCharacters, false)
	if text == "" {
		return "", nil
	}
	return text, Marshal(text)
}

// OptionalNumber returns an amount that may be absent or null: "". One that is there follows the rule of Number.
func (r *Reader) OptionalNumber(path string) string {
	_, present, failure := r.lookUp(path)
	if failure != nil {
		r.RecordFault(failure)
		return ""
	}
	if !present {
		return ""
	}
	text, _ := r.Number(path)
	return text
}

// TextList returns a required array of 1 to maxItems texts, each by the rule of Text. Absent and null are Missing,
// everything else is Invalid and names the array. After a fault it is nil.
func (r *Reader) TextList(path string, maxItems, limit int) []string {
	value, ok := r.requirePart(path)
	if !ok {
		return nil
	}
	items, ok := value.([]any)
	if !ok {
		r.recordInvalid(path, errWrongType)
		return nil
	}
	if len(items) == 0 || len(items) > maxItems {
		r.recordInvalid(path, errItemCount)
		return nil
	}
	texts := make([]string, 0, len(items))
	for _, item := range items {
		text, cause := validateText(item, limit, false)
		if cause != nil {
			r.recordInvalid(path, cause)
			return nil
		}
		texts = append(texts, text)
	}
	return texts
}

// HasObject tells whether the part is there and an object. Absent and null are false without a fault; another type is
// false and Invalid.
func (r *Reader) HasObject(path string) bool {
	value, present, failure := r.lookUp(path)
	if failure != nil {
		r.RecordFault(failure)
		return false
	}
	if !present {
		return false
	}
	_, ok := value.(map[string]any)
	if !ok {
		r.recordInvalid(path, errWrongType)
	}
	return ok
}

// RecordFault records a fault of the caller's own rules, if it is the first. nil changes nothing.
func (r *Reader) RecordFault(f *fault.Fault) {
	if r.firstFault == nil {
		r.firstFault = f
	}
}

// FirstFault is the first recorded fault, nil if there is none. Compare it with nil before it becomes an error.
func (r *Reader) FirstFault() *fault.Fault { return r.firstFault }

// Canonical writes the whole body in a form that only its meaning decides: keys sorted, texts decoded, no spaces,
// numbers as they were written. Top-level keys named in without are left out. It is what fingerprints are made of
// (decision "fingerprint").
func (r *Reader) Canonical(excludedKeys ...string) []byte {
	kept := make(map[string]any, len(r.root))
	for key, value := range r.root {
		kept[key] = value
	}
	for _, key := range excludedKeys {
		delete(kept, key)
	}
	return Marshal(kept)
}

// requirePart finds a part, and records Missing where it is absent or null.
func (r *Reader) requirePart(path string) (value any, ok bool) {
	value, present, failure := r.lookUp(path)
	if failure != nil {
		r.RecordFault(failure)
		return nil, false
	}
	if !present {
		r.RecordFault(fault.ForPart(fault.MissingPart, path))
		return nil, false
	}
	return value, true
}

// lookUp follows a path. null counts as absent, everywhere.
func (r *Reader) lookUp(path string) (value any, present bool, failure *fault.Fault) {
	value = any(r.root)
	consumed := 0
	for rest, more := path, true; more; {
		var key string
		object, ok := value.(map[string]any)
		if !ok {
			parent := strings.TrimSuffix(path[:consumed], ".")
			return nil, false, &fault.Fault{Kind: fault.InvalidPart, Part: parent, Cause: errWrongType}
		}
		key, rest, more = strings.Cut(rest, ".")
		consumed += len(key) + 1
		value = object[key]
		if value == nil {
			return nil, false, nil
		}
	}
	return value, true, nil
}

// validText checks a text and records Invalid; "" after a fault.
func (r *Reader) validText(path string, value any, limit int, multiline bool) string {
	text, cause := validateText(value, limit, multiline)
	if cause != nil {
		r.recordInvalid(path, cause)
		return ""
	}
	return text
}

// recordInvalid records that a part breaks its rule.
func (r *Reader) recordInvalid(path string, cause error) {
	r.RecordFault(&fault.Fault{Kind: fault.InvalidPart, Part: path, Cause: cause})
}

// validateText is the rule of Text.
func validateText(value any, limit int, multiline bool) (string, error) {
	text, ok := value.(string)
	if !ok {
		return "", errWrongType
	}
	if text == "" {
		return "", errEmpty
	}
	if utf8.RuneCountInString(text) > limit {
		return "", errTooLong
	}
	for _, char := range text {
		if unicode.IsControl(char) && !(multiline && (char == '\n' || char == '\r' || char == '\t')) {
			return "", errControlCharacter
		}
	}
	return text, nil
}
