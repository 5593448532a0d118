// Package logsafe makes errors whose texts a log line may show, and describes any other error by its type and code.
//
// Its invariant: Text has no text of a client, an operator or a library. A text of this program is a constant, which
// the compiler checks. Values in it are numbers, names of this program, and codes of a strict form.
package logsafe

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"mobilegateway/shared/ascii"
)

// Hidden replaces a value that a log line must not show.
const Hidden = "***"

// constant is a text of this program: no other package can convert a variable to it.
type constant string

// Name is a name of this program, such as that of a row of its tables. Text shows it as it is.
type Name string

// TypeOf names the type of a value, such as that of a panic.
func TypeOf(value any) Name { return Name(fmt.Sprintf("%T", value)) }

// Code is a code that another system chose. Text shows it if it has the form of one.
type Code string

// message is an error with a constant text.
type message struct{ text string }

// Error returns the constant.
func (m *message) Error() string { return m.text }

// LogText returns it too.
func (m *message) LogText() string { return m.text }

// New makes an error of a constant text. Text shows it.
func New(text constant) error { return &message{string(text)} }

// formatted is an error whose values may be foreign.
type formatted struct {
	error
	format string
	values []any
}

// Unwrap returns the error of package fmt, which wraps the values.
func (f *formatted) Unwrap() error { return f.error }

// Errorf makes an error as fmt.Errorf does. Text shows its format, and values that are int, Name, Code or an error. It
// hides other values.
func Errorf(format constant, values ...any) error {
	return &formatted{fmt.Errorf(string(format), values...), string(format), values}
}

// Text describes an error for a log line: by the texts of this program and by codes; an error of a library by its type.
// A type of an error that has a text of its own returns it from LogText.
func Text(err error) string {
	switch e := err.(type) { //nolint:errorlint // each error of the chain is described in its place
	case nil:
		return ""
	case interface{ LogText() string }:
		return e.LogText()
	case syscall.Errno:
		return e.Error()
	case interface{ ErrorCode() string }: // of the SDK
		return FilterCode(e.ErrorCode())
	case interface{ Unwrap() []error }:
		return joinTexts(e.Unwrap())
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF { //nolint:errorlint // as above
		return err.Error()
	}
	name := fmt.Sprintf("%T", err)
	switch inner := errors.Unwrap(err); {
	case inner == nil:
		return name
	case name == "*fmt.wrapError":
		return Text(inner)
	default:
		return name + ": " + Text(inner)
	}
}

func joinTexts(errs []error) string {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = Text(err)
	}
	return strings.Join(texts, "; ")
}

// LogText formats the values that may be visible.
func (f *formatted) LogText() string {
	visible := make([]any, len(f.values))
	for i, value := range f.values {
		switch value := value.(type) {
		case error:
			visible[i] = Text(value)
		case Code:
			visible[i] = FilterCode(string(value))
		case Name, int:
			visible[i] = value
		default:
			visible[i] = Hidden
		}
	}
	return fmt.Sprintf(strings.ReplaceAll(f.format, "%w", "%s"), visible...)
}

// The limits of a code, in bytes.
const (
	maxCode      = 64 // the longest part of a message has 58
	minToken     = 20 // a longer text with digits can be a token
	minDigits    = 4  // a longer run of digits can be a one-time code or a part of a number
	errorDigits  = 4
	gatewayError = "90" // 9009nn and 9008nn
)

// FilterCode returns a code, "" for none, and Hidden for a text of another form.
func FilterCode(text string) string {
	for _, prefix := range []string{"SVC", "POL", "PDK_SMSW_", gatewayError} {
		if number, found := strings.CutPrefix(text, prefix); found && len(number) == errorDigits &&
			ascii.IsDigits(number) {
			return text
		}
	}
	if text == "" {
		return ""
	}
	isLong := len(text) > maxCode || len(text) >= minToken && strings.ContainsAny(text, ascii.Digits)
	if isLong || hasDigits(text, minDigits) || !ascii.ConsistsOf(text, ascii.Letters+ascii.Digits+"-_.[]") {
		return Hidden
	}
	return text
}

// hasDigits reports whether a text has a run of digits of a length.
func hasDigits(text string, length int) bool {
	run := 0
	for i := range len(text) {
		if !strings.Contains(ascii.Digits, text[i:i+1]) {
			run = 0
		} else if run++; run == length {
			return true
		}
	}
	return false
}
