package strictjson_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/strictjson"
)

func parse(t *testing.T, body string) *strictjson.Reader {
	t.Helper()
	reader, err := strictjson.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

// outcome writes a fault as "kind in part", and "" for none.
func outcome(reader *strictjson.Reader) string {
	failure := reader.FirstFault()
	if failure == nil {
		return ""
	}
	return failure.Kind.String() + " in " + failure.Part
}

// readCase is a body, the value that a read returns, and the first fault as "kind in part".
type readCase struct{ name, body, want, fault string }

// checkReads reads each body and compares value and fault.
func checkReads(t *testing.T, read func(r *strictjson.Reader) string, cases []readCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			reader := parse(t, c.body)
			got := read(reader)
			if diff := cmp.Diff([]string{c.want, c.fault}, []string{got, outcome(reader)}); diff != "" {
				t.Errorf("value and fault of %s (-want +got):\n%s", c.body, diff)
			}
		})
	}
}

func TestText(t *testing.T) {
	tests := []struct{ name, body, path, want, fault string }{
		{"there", `{"a":"x"}`, "a", "x", ""},
		{"inside", `{"a":{"b":{"c":"x"}}}`, "a.b.c", "x", ""},
		{"as long as allowed", `{"a":"éééé"}`, "a", "éééé", ""},
		{"absent", `{}`, "a", "", "missing in a"},
		{"null", `{"a":null}`, "a", "", "missing in a"},
		{"another case", `{"A":"x"}`, "a", "", "missing in a"},
		{"parent absent", `{}`, "a.b.c", "", "missing in a.b.c"},
		{"parent null", `{"a":{"b":null}}`, "a.b.c", "", "missing in a.b.c"},
		{"parent a text", `{"a":"x"}`, "a.b.c", "", "invalid in a"},
		{"inner parent an array", `{"a":{"b":[{"c":"x"}]}}`, "a.b.c", "", "invalid in a.b"},
		{"number", `{"a":1}`, "a", "", "invalid in a"},
		{"object", `{"a":{}}`, "a", "", "invalid in a"},
		{"false", `{"a":false}`, "a", "", "invalid in a"},
		{"empty", `{"a":""}`, "a", "", "invalid in a"},
		{"too long", `{"a":"ééééé"}`, "a", "", "invalid in a"},
		{"line end", `{"a":"x\n"}`, "a", "", "invalid in a"},
		{"NUL", `{"a":"\u0000"}`, "a", "", "invalid in a"},
		{"delete", `{"a":"\u007f"}`, "a", "", "invalid in a"},
		{"C1 control", `{"a":"\u0085"}`, "a", "", "invalid in a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			reader := parse(t, test.body)
			if got := reader.Text(test.path, 4); got != test.want || outcome(reader) != test.fault {
				t.Errorf("Text = %q with %q, want %q with %q", got, outcome(reader), test.want, test.fault)
			}
		})
	}
}

func TestMultilineText(t *testing.T) {
	checkReads(t, func(r *strictjson.Reader) string { return r.MultilineText("a", 10) }, []readCase{
		{"line ends and a tab", `{"a":"x\r\n\ty"}`, "x\r\n\ty", ""},
		{"NUL", `{"a":"x\u0000"}`, "", "invalid in a"},
		{"absent", `{}`, "", "missing in a"},
		{"empty", `{"a":""}`, "", "invalid in a"},
	})
}

func TestUnicodeText(t *testing.T) {
	for _, want := range []string{"x\r\n\ty", "\x00\x01\x7f\u0085\u2028", "🎁é"} {
		reader := parse(t, string(strictjson.Marshal(map[string]string{"a": want})))
		if got := reader.UnicodeText("a", 10); got != want || reader.FirstFault() != nil {
			t.Errorf("UnicodeText = %q with %q, want %q", got, outcome(reader), want)
		}
	}
	for body, want := range map[string]string{
		`{}`: "missing in a", `{"a":null}`: "missing in a", `{"a":""}`: "invalid in a", `{"a":1}`: "invalid in a",
		`{"a":"ééé"}`: "invalid in a",
	} {
		reader := parse(t, body)
		if got := reader.UnicodeText("a", 5); got != "" || outcome(reader) != want {
			t.Errorf("UnicodeText of %s = %q with %q, want %q", body, got, outcome(reader), want)
		}
	}
}

func TestOptionalText(t *testing.T) {
	read := func(r *strictjson.Reader) string {
		text, present := r.OptionalText("a.b", 4)
		if present != (text != "") {
			t.Errorf("OptionalText returned %q, present: %v", text, present)
		}
		return text
	}
	checkReads(t, read, []readCase{
		{"there", `{"a":{"b":"x"}}`, "x", ""},
		{"absent", `{"a":{}}`, "", ""},
		{"null", `{"a":{"b":null}}`, "", ""},
		{"parent absent", `{}`, "", ""},
		{"parent null", `{"a":null}`, "", ""},
		{"parent a number", `{"a":1}`, "", "invalid in a"},
		{"empty", `{"a":{"b":""}}`, "", "invalid in a.b"},
		{"number", `{"a":{"b":1}}`, "", "invalid in a.b"},
		{"too long", `{"a":{"b":"12345"}}`, "", "invalid in a.b"},
	})
}

// Numbers keep their text: package money decides whether -0 and 1e3 are amounts.
func TestNumber(t *testing.T) {
	read := func(r *strictjson.Reader) string {
		text, raw := r.Number("a")
		if text == "" && raw == nil {
			return ""
		}
		return text + " as " + string(raw)
	}
	checkReads(t, read, []readCase{
		{"text", `{"a":"500.00"}`, `500.00 as "500.00"`, ""},
		{"integer", `{"a":500}`, `500 as 500`, ""},
		{"decimals", `{"a":1.50}`, `1.50 as 1.50`, ""},
		{"more digits than a float", `{"a":123456789012.123456789}`,
			"123456789012.123456789 as 123456789012.123456789", ""},
		{"minus zero", `{"a":-0}`, `-0 as -0`, ""},
		{"exponent", `{"a":1e3}`, `1e3 as 1e3`, ""},
		{"any text", `{"a":"<5 & 6>"}`, `<5 & 6> as "<5 & 6>"`, ""},
		{"null", `{"a":null}`, "", "missing in a"},
		{"true", `{"a":true}`, "", "invalid in a"},
		{"array", `{"a":[1]}`, "", "invalid in a"},
		{"empty", `{"a":""}`, "", "invalid in a"},
		{"line end", `{"a":"1\n"}`, "", "invalid in a"},
		{"long text", `{"a":"` + strings.Repeat("1", 65) + `"}`, "", "invalid in a"},
		{"long number", `{"a":` + strings.Repeat("1", 65) + `}`, "", "invalid in a"},
		{"absent", `{}`, "", "missing in a"},
	})
}

func TestOptionalNumber(t *testing.T) {
	checkReads(t, func(r *strictjson.Reader) string { return r.OptionalNumber("a.b") }, []readCase{
		{"number", `{"a":{"b":1.50}}`, "1.50", ""},
		{"text", `{"a":{"b":"1.50"}}`, "1.50", ""},
		{"absent", `{"a":{}}`, "", ""},
		{"null", `{"a":{"b":null}}`, "", ""},
		{"parent absent", `{}`, "", ""},
		{"parent a number", `{"a":1}`, "", "invalid in a"},
		{"true", `{"a":{"b":true}}`, "", "invalid in a.b"},
		{"empty", `{"a":{"b":""}}`, "", "invalid in a.b"},
	})
}

func TestTextList(t *testing.T) {
	checkReads(t, func(r *strictjson.Reader) string { return strings.Join(r.TextList("a", 2, 4), ",") }, []readCase{
		{"one", `{"a":["x"]}`, "x", ""},
		{"two", `{"a":["x","y"]}`, "x,y", ""},
		{"null", `{"a":null}`, "", "missing in a"},
		{"none", `{"a":[]}`, "", "invalid in a"},
		{"too many", `{"a":["x","y","z"]}`, "", "invalid in a"},
		{"a text", `{"a":"x"}`, "", "invalid in a"},
		{"number inside", `{"a":["x",1]}`, "", "invalid in a"},
		{"null inside", `{"a":[null]}`, "", "invalid in a"},
		{"empty inside", `{"a":[""]}`, "", "invalid in a"},
		{"too long inside", `{"a":["12345"]}`, "", "invalid in a"},
	})
}

func TestHasObject(t *testing.T) {
	checkReads(t, func(r *strictjson.Reader) string { return strconv.FormatBool(r.HasObject("a.b")) }, []readCase{
		{"there", `{"a":{"b":{}}}`, "true", ""},
		{"absent", `{"a":{}}`, "false", ""},
		{"null", `{"a":{"b":null}}`, "false", ""},
		{"array", `{"a":{"b":[]}}`, "false", "invalid in a.b"},
		{"text", `{"a":{"b":"x"}}`, "false", "invalid in a.b"},
		{"parent a text", `{"a":"x"}`, "false", "invalid in a"},
	})
}

// All parts are read in one pass, and the first fault in the order of the reads is kept.
func TestFirstFaultIsKept(t *testing.T) {
	reader := parse(t, `{"b":1,"d":"ok"}`)
	reader.RecordFault(nil)
	if reader.FirstFault() != nil {
		t.Fatal("nil became a fault")
	}
	reader.Text("a", 4)
	reader.Text("b", 4)
	reader.RecordFault(fault.ForPart(fault.ValueNotAllowed, "c"))
	if got := reader.Text("d", 4); got != "ok" {
		t.Errorf("a part after the fault is %q", got)
	}
	if outcome(reader) != "missing in a" {
		t.Errorf("fault is %q", outcome(reader))
	}
}

func TestCanonical(t *testing.T) {
	tests := []struct {
		name, body, want string
		without          []string
	}{
		{"keys sorted, spaces gone", ` {"b": 1, "a": {"d":[], "c":null}} `, `{"a":{"c":null,"d":[]},"b":1}`, nil},
		{"texts decoded", `{"a":"\u0041\/<&>\u00e9"}`, `{"a":"A/<&>é"}`, nil},
		{"numbers as written", `{"a":[1,1.0,1e3,-0]}`, `{"a":[1,1.0,1e3,-0]}`, nil},
		{"without a key", `{"otp_code":"1234","b":{"otp_code":"x"}}`, `{"b":{"otp_code":"x"}}`, []string{"otp_code"}},
		{"without an absent key", `{"b":1}`, `{"b":1}`, []string{"otp_code", "x"}},
		{"empty", `{}`, `{}`, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			reader := parse(t, test.body)
			if got := string(reader.Canonical(test.without...)); got != test.want {
				t.Errorf("Canonical = %s, want %s", got, test.want)
			}
		})
	}
}

func TestCanonicalDoesNotChangeTheReader(t *testing.T) {
	reader := parse(t, `{"otp_code":"1234"}`)
	reader.Canonical("otp_code")
	if got := reader.Text("otp_code", 4); got != "1234" {
		t.Errorf("otp_code is %q afterwards", got)
	}
}
