package kit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
)

// Fields are the fields of a JSON object. Numbers are json.Number.
type Fields map[string]any

// Text returns the text at a path of names with dots. It is "" for an absent field and for a value of another type.
func (f Fields) Text(path string) string {
	name, rest, isPath := strings.Cut(path, ".")
	if object, ok := f[name].(map[string]any); isPath && ok {
		return Fields(object).Text(rest)
	}
	text, _ := f[path].(string)
	return text
}

// decodeObject reads exactly one JSON object. It refuses fields that a struct lacks.
func decodeObject(raw []byte, v any) error {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return errors.New("a JSON object is required")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	if err := decoder.Decode(v); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more text follows the JSON object")
	}
	return nil
}

var (
	uuidForm   = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	amountForm = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
)

// IsUUIDv4 reports whether s is a UUID of version 4 in its usual form.
func IsUUIDv4(s string) bool { return uuidForm.MatchString(s) }

// IsAmount reports whether s is a positive decimal number without a sign.
func IsAmount(s string) bool { return amountForm.MatchString(s) && strings.Trim(s, "0.") != "" }

// IsWholeAmount reports whether s is a positive whole number without a sign or a zero in front.
func IsWholeAmount(s string) bool { return IsAmount(s) && IsDigits(s) && s[0] != '0' }

// IsDigits reports whether s has decimal digits only, and at least one.
func IsDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// ReadDigits returns the digits that a person typed, without spaces and a plus sign in front, or "" if their number is
// wrong.
func ReadDigits(typed string, shortest, longest int) string {
	text := strings.TrimPrefix(strings.ReplaceAll(typed, " ", ""), "+")
	if len(text) < shortest || len(text) > longest || !IsDigits(text) {
		return ""
	}
	return text
}
