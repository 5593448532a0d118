package strictjson

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"

	"mobilegateway/shared/fault"
)

// MaxNumberCharacters is the limit of an amount's text, far above the limits of package money.
const MaxNumberCharacters = 64

// The causes of a refused part, for the log, without its value.
var (
	errWrongType        = errors.New("wrong JSON type")
	errEmpty            = errors.New("empty")
	errTooLong          = errors.New("too long")
	errControlCharacter = errors.New("control character")
	errItemCount        = errors.New("number of items")
)

// Reader returns the parts of a body and keeps the first fault. Callers read the parts in the specification's order,
// continue after a fault, and check FirstFault once at the end. A path is object keys joined by points,
// "amountTransaction.endUserId", and matches with its case.
//
// For every method: if a parent of the part is absent or null, the part is absent. If a parent is not an object, the
// fault is InvalidPart and names the parent. A Reader belongs to one goroutine.
type Reader struct {
	root       map[string]any
	firstFault *fault.Fault
}

// Text returns a required text of 1 to limit characters (Unicode code points) without control characters. Absent and
// null are MissingPart. Another type, an empty or longer text and control characters are InvalidPart. After a fault it
// returns "".
func (r *Reader) Text(path string, limit int) string {
	return r.requiredText(path, limit, false)
}

// MultilineText is Text that also accepts tabs and line ends, for the message of an SMS.
func (r *Reader) MultilineText(path string, limit int) string {
	return r.requiredText(path, limit, true)
}

func (r *Reader) requiredText(path string, limit int, multiline bool) string {
	value, ok := r.requirePart(path)
	if !ok {
		return ""
	}
	return r.validText(path, value, limit, multiline)
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

// OptionalText returns a text that may be absent or null: "", false. A present text follows the rule of Text, so an
// empty one is InvalidPart: it must never become a key. After a fault it returns "", false.
func (r *Reader) OptionalText(path string, limit int) (text string, present bool) {
	value, present := r.optionalPart(path)
	if !present {
		return "", false
	}
	text = r.validText(path, value, limit, false)
	return text, text != ""
}

// IsEmptyText reports whether the part is an empty text. It records no fault.
func (r *Reader) IsEmptyText(path string) bool {
	value, present, failure := r.lookUp(path)
	return failure == nil && present && value == ""
}

// Number returns a required amount, sent as a JSON number or as a text: its characters, and the JSON value to echo. It
// checks only that there are 1 to MaxNumberCharacters characters without control characters; package money parses them.
// Absent and null are MissingPart, everything else is InvalidPart.
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

// OptionalNumber returns an amount that may be absent or null: "". A present one follows the rule of Number.
func (r *Reader) OptionalNumber(path string) string {
	if _, present := r.optionalPart(path); !present {
		return ""
	}
	text, _ := r.Number(path)
	return text
}

// TextList returns a required array of 1 to maxItems texts, each by the rule of Text. Absent and null are MissingPart,
// everything else is InvalidPart and names the array. After a fault it returns nil.
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

// HasObject reports whether the part is an object. Absent and null are false without a fault; another type is
// InvalidPart.
func (r *Reader) HasObject(path string) bool {
	value, present := r.optionalPart(path)
	_, ok := value.(map[string]any)
	if present && !ok {
		r.recordInvalid(path, errWrongType)
	}
	return ok
}

// RecordFault records a fault of the caller's own rules if it is the first. nil changes nothing.
func (r *Reader) RecordFault(f *fault.Fault) {
	if r.firstFault == nil {
		r.firstFault = f
	}
}

// FirstFault returns the first recorded fault, nil if there is none. Compare it with nil before it becomes an error.
func (r *Reader) FirstFault() *fault.Fault { return r.firstFault }

// Canonical writes the body in a form that depends only on its meaning: sorted keys, decoded texts, no spaces, and
// numbers as sent. It omits the excluded top-level keys. Fingerprints are made of it (decision "fingerprint").
func (r *Reader) Canonical(excludedKeys ...string) []byte {
	kept := maps.Clone(r.root)
	for _, key := range excludedKeys {
		delete(kept, key)
	}
	return Marshal(kept)
}

// requirePart finds a part, and records MissingPart if it is absent or null.
func (r *Reader) requirePart(path string) (value any, ok bool) {
	value, present, failure := r.lookUp(path)
	if failure == nil && !present {
		failure = fault.ForPart(fault.MissingPart, path)
	}
	r.RecordFault(failure)
	return value, present
}

// optionalPart finds a part that may be absent or null.
func (r *Reader) optionalPart(path string) (value any, present bool) {
	value, present, failure := r.lookUp(path)
	r.RecordFault(failure)
	return value, present
}

// lookUp follows a path. null counts as absent everywhere.
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

// validText checks a text and records InvalidPart; it returns "" after a fault.
func (r *Reader) validText(path string, value any, limit int, multiline bool) string {
	text, cause := validateText(value, limit, multiline)
	if cause != nil {
		r.recordInvalid(path, cause)
		return ""
	}
	return text
}

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
