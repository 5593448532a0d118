package strictjson

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
)

// MaxNumberCharacters is the limit of an amount's text, far above the limits of package money.
const MaxNumberCharacters = 64

// The causes of a refused part, for the log, without its value.
var (
	errWrongType        = logsafe.New("wrong JSON type")
	errEmpty            = logsafe.New("empty")
	errTooLong          = logsafe.New("too long")
	errControlCharacter = logsafe.New("control character")
	errItemCount        = logsafe.New("number of items")
)

// Reader returns the parts of a body and keeps the first fault. Callers read the parts in the specification's order,
// continue after a fault, and check FirstFault once at the end. A path is object keys joined by points,
// "amountTransaction.endUserId", and matches with its case.
//
// For every method: if a parent of the part is absent or null, the part is absent. If a parent is not an object, the
// fault is InvalidPart and names the parent. A Reader belongs to one goroutine.
type Reader struct {
	document
	root       int // index of the object whose parts are read
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
	text, cause := r.textOf(value)
	if cause == nil && len(text) > maxBytes {
		cause = errTooLong
	}
	if cause != nil {
		r.recordInvalid(path, cause)
		return ""
	}
	return text
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
	return failure == nil && present && r.raw(value) == `""`
}

// Number returns a required amount, sent as a JSON number or as a text: its characters, and the JSON value to echo. It
// checks only that there are 1 to MaxNumberCharacters characters without control characters; package money parses them.
// Absent and null are MissingPart, everything else is InvalidPart.
func (r *Reader) Number(path string) (text string, raw json.RawMessage) {
	value, ok := r.requirePart(path)
	if !ok {
		return "", nil
	}
	if r.nodes[value].isNumber() {
		number := r.raw(value)
		if len(number) > MaxNumberCharacters {
			r.recordInvalid(path, errTooLong)
			return "", nil
		}
		return number, json.RawMessage(number)
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
	if r.nodes[value].kind != '[' {
		r.recordInvalid(path, errWrongType)
		return nil
	}
	texts := []string{}
	for i := value + 1; i < r.after(value); i = r.after(i) {
		if len(texts) == maxItems {
			r.recordInvalid(path, errItemCount)
			return nil
		}
		text, cause := r.checkedText(i, limit, false)
		if cause != nil {
			r.recordInvalid(path, cause)
			return nil
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		r.recordInvalid(path, errItemCount)
		return nil
	}
	return texts
}

// HasObject reports whether the part is an object. Absent and null are false without a fault; another type is
// InvalidPart.
func (r *Reader) HasObject(path string) bool {
	value, present := r.optionalPart(path)
	isObject := present && r.nodes[value].kind == '{'
	if present && !isObject {
		r.recordInvalid(path, errWrongType)
	}
	return isObject
}

// Objects returns a part that is one object, or an array of at most maxItems objects, as readers of their own. Absent
// and null have none. Another type, and more items, are InvalidPart.
func (r *Reader) Objects(path string, maxItems int) []*Reader {
	value, present := r.optionalPart(path)
	if !present {
		return nil
	}
	first, end := value, r.after(value)
	if r.nodes[value].kind == '[' {
		first++
	}
	var objects []*Reader
	for i := first; i < end; i = r.after(i) {
		if r.nodes[i].kind != '{' || len(objects) == maxItems {
			r.recordInvalid(path, errWrongType)
			return nil
		}
		objects = append(objects, &Reader{document: r.document, root: i})
	}
	return objects
}

// RecordFault records a fault of the caller's own rules if it is the first. nil changes nothing.
func (r *Reader) RecordFault(f *fault.Fault) {
	if r.firstFault == nil {
		r.firstFault = f
	}
}

// FirstFault returns the first recorded fault, nil if there is none. Compare it with nil before it becomes an error.
func (r *Reader) FirstFault() *fault.Fault { return r.firstFault }

// requirePart finds a part, and records MissingPart if it is absent or null.
func (r *Reader) requirePart(path string) (value int, ok bool) {
	value, present, failure := r.lookUp(path)
	if failure == nil && !present {
		failure = fault.ForPart(fault.MissingPart, path)
	}
	r.RecordFault(failure)
	return value, present
}

// optionalPart finds a part that may be absent or null.
func (r *Reader) optionalPart(path string) (value int, present bool) {
	value, present, failure := r.lookUp(path)
	r.RecordFault(failure)
	return value, present
}

// lookUp follows a path to the index of a node. null counts as absent everywhere.
func (r *Reader) lookUp(path string) (value int, present bool, failure *fault.Fault) {
	value = r.root
	consumed := 0
	for rest, more := path, true; more; {
		var key string
		if r.nodes[value].kind != '{' {
			parent := strings.TrimSuffix(path[:consumed], ".")
			return 0, false, &fault.Fault{Kind: fault.InvalidPart, Part: parent, Cause: errWrongType}
		}
		key, rest, more = strings.Cut(rest, ".")
		consumed += len(key) + 1
		value = r.member(value, key)
		if value < 0 || r.nodes[value].isNull() {
			return 0, false, nil
		}
	}
	return value, true, nil
}

// validText checks a text and records InvalidPart; it returns "" after a fault.
func (r *Reader) validText(path string, value, limit int, multiline bool) string {
	text, cause := r.checkedText(value, limit, multiline)
	if cause != nil {
		r.recordInvalid(path, cause)
		return ""
	}
	return text
}

func (r *Reader) recordInvalid(path string, cause error) {
	r.RecordFault(&fault.Fault{Kind: fault.InvalidPart, Part: path, Cause: cause})
}

// textOf returns a text that is not empty.
func (r *Reader) textOf(value int) (string, error) {
	if !r.nodes[value].isText() {
		return "", errWrongType
	}
	text := r.decodedText(value)
	if text == "" {
		return "", errEmpty
	}
	return text, nil
}

// checkedText is the rule of Text.
func (r *Reader) checkedText(value, limit int, multiline bool) (string, error) {
	text, cause := r.textOf(value)
	if cause != nil {
		return "", cause
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
