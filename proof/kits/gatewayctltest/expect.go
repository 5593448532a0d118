package gatewayctltest

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/attention"
)

// Equal fails unless two values are equal. what names the rule that broke.
func Equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Equal is the function Equal for the tool's test.
func (d *Tool) Equal(what string, got, want any) {
	d.T.Helper()
	Equal(d.T, what, got, want)
}

// ExpectJSON runs a command that must succeed, and whose JSON is a value.
func (d *Tool) ExpectJSON(what, line string, want any) {
	d.T.Helper()
	got := reflect.New(reflect.TypeOf(want))
	d.MustRun(line, got.Interface())
	Equal(d.T, what, got.Elem().Interface(), want)
}

// ExpectCount runs a command that must succeed, and whose JSON is a list of this length.
func (d *Tool) ExpectCount(what, line string, want int) {
	d.T.Helper()
	Equal(d.T, what, len(Query[[]json.RawMessage](d, line)), want)
}

// ExpectFailed makes a change that must fail, with a text on its standard error.
func (d *Tool) ExpectFailed(line, text string) {
	d.T.Helper()
	d.ExpectExit(line+Confirm, gatewayctl.ExitFailed, text)
}

// ExpectOutput runs a command that must succeed, and whose output has the parts in this order.
func (d *Tool) ExpectOutput(line string, parts ...string) {
	d.T.Helper()
	out := d.mustExec(line)
	rest := out
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			d.T.Fatalf("%s: %q is missing or out of order: %s", line, part, out)
		}
		rest = after
	}
}

// ExpectWithout runs a command that must end with an exit code, and none of whose outputs has a text.
func (d *Tool) ExpectWithout(line string, want int, texts ...string) {
	d.T.Helper()
	code, out, stderr := d.Exec(line)
	if code != want {
		d.T.Errorf("%s: exit %d (want %d): %s%s", line, code, want, out, stderr)
	}
	for _, text := range texts {
		if strings.Contains(out+stderr, text) {
			d.T.Errorf("%s: the output has %q: %s%s", line, text, out, stderr)
		}
	}
}

// ExpectExit runs a command that must end with an exit code, and whose standard error has the texts.
func (d *Tool) ExpectExit(line string, want int, texts ...string) {
	d.T.Helper()
	code, out, stderr := d.Exec(line)
	if code != want {
		d.T.Errorf("%s: exit %d (want %d): %s%s", line, code, want, out, stderr)
	}
	for _, text := range texts {
		if !strings.Contains(stderr, text) {
			d.T.Errorf("%s: %q lacks %q; out %s", line, stderr, text, out)
		}
	}
}

// ExpectBoth is expectExit of the dry run and of the change.
func (d *Tool) ExpectBoth(line string, want int, text string) {
	d.T.Helper()
	d.ExpectExit(line, want, text)
	d.ExpectExit(line+Confirm, want, text)
}

// ReadFile returns the text of a file.
func ReadFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// WriteFile writes a private file.
func WriteFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Decode decodes a JSON document.
func Decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// Line is a line without its time.
type Line struct{ What, Merchant, Subject, Detail, Command string }

// ExpectAttention runs attention, which must show these lines.
func (d *Tool) ExpectAttention(what, line string, want ...Line) {
	d.T.Helper()
	code := gatewayctl.ExitDone
	if len(want) > 0 {
		code = gatewayctl.ExitWaiting
	}
	Equal(d.T, what, d.Attend(line, code), want)
}

// Attend runs attention, which must end with a code, and returns its lines.
func (d *Tool) Attend(line string, want int) []Line {
	d.T.Helper()
	views, _ := QueryExit[[]attention.View](d, line, want)
	var lines []Line
	for i, v := range views {
		if i > 0 && v.Since.Before(views[i-1].Since) {
			d.T.Errorf("%s: line %d is older than the one before it: %+v", line, i, views)
		}
		lines = append(lines, Line{v.What, v.Merchant, v.Subject, v.Detail, v.Command})
	}
	return lines
}
