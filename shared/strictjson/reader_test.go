package strictjson_test

import (
	"strings"
	"testing"

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
	reader := parse(t, `{"a":"x\r\n\ty"}`)
	if got := reader.MultilineText("a", 10); got != "x\r\n\ty" || reader.FirstFault() != nil {
		t.Errorf("MultilineText = %q with %q", got, outcome(reader))
	}
	for body, want := range map[string]string{`{"a":"x\u0000"}`: "invalid in a", `{}`: "missing in a", `{"a":""}`: "invalid in a"} {
		reader := parse(t, body)
		if got := reader.MultilineText("a", 10); got != "" || outcome(reader) != want {
			t.Errorf("MultilineText of %s = %q with %q", body, got, outcome(reader))
		}
	}
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
	tests := []struct {
		name, body, want string
		present          bool
		fault            string
	}{
		{"there", `{"a":{"b":"x"}}`, "x", true, ""},
		{"absent", `{"a":{}}`, "", false, ""},
		{"null", `{"a":{"b":null}}`, "", false, ""},
		{"parent absent", `{}`, "", false, ""},
		{"parent null", `{"a":null}`, "", false, ""},
		{"parent a number", `{"a":1}`, "", false, "invalid in a"},
		{"empty", `{"a":{"b":""}}`, "", false, "invalid in a.b"},
		{"number", `{"a":{"b":1}}`, "", false, "invalid in a.b"},
		{"too long", `{"a":{"b":"12345"}}`, "", false, "invalid in a.b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			reader := parse(t, test.body)
			got, present := reader.OptionalText("a.b", 4)
			if got != test.want || present != test.present || outcome(reader) != test.fault {
				t.Errorf("OptionalText = %q, %v with %q", got, present, outcome(reader))
			}
		})
	}
}

// Numbers keep their text: whether -0 and 1e3 are amounts is for package money to say.
func TestNumber(t *testing.T) {
	tests := []struct{ name, value, text, raw, fault string }{
		{"text", `"500.00"`, "500.00", `"500.00"`, ""},
		{"integer", `500`, "500", `500`, ""},
		{"decimals", `1.50`, "1.50", `1.50`, ""},
		{"more digits than a float holds", `123456789012.123456789`, "123456789012.123456789", `123456789012.123456789`, ""},
		{"minus zero", `-0`, "-0", `-0`, ""},
		{"exponent", `1e3`, "1e3", `1e3`, ""},
		{"any text", `"<5 & 6>"`, "<5 & 6>", `"<5 & 6>"`, ""},
		{"null", `null`, "", "", "missing in a"},
		{"true", `true`, "", "", "invalid in a"},
		{"array", `[1]`, "", "", "invalid in a"},
		{"empty", `""`, "", "", "invalid in a"},
		{"line end", `"1\n"`, "", "", "invalid in a"},
		{"long text", `"` + strings.Repeat("1", 65) + `"`, "", "", "invalid in a"},
		{"long number", strings.Repeat("1", 65), "", "", "invalid in a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			reader := parse(t, `{"a":`+test.value+`}`)
			text, raw := reader.Number("a")
			if text != test.text || string(raw) != test.raw || outcome(reader) != test.fault {
				t.Errorf("Number = %q, %s with %q", text, raw, outcome(reader))
			}
		})
	}
	reader := parse(t, `{}`)
	if _, raw := reader.Number("a.b"); raw != nil || outcome(reader) != "missing in a.b" {
		t.Errorf("absent: %s with %q", raw, outcome(reader))
	}
}

func TestOptionalNumber(t *testing.T) {
	tests := []struct{ name, body, want, fault string }{
		{"number", `{"a":{"b":1.50}}`, "1.50", ""},
		{"text", `{"a":{"b":"1.50"}}`, "1.50", ""},
		{"absent", `{"a":{}}`, "", ""},
		{"null", `{"a":{"b":null}}`, "", ""},
		{"parent absent", `{}`, "", ""},
		{"parent a number", `{"a":1}`, "", "invalid in a"},
		{"true", `{"a":{"b":true}}`, "", "invalid in a.b"},
		{"empty", `{"a":{"b":""}}`, "", "invalid in a.b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			reader := parse(t, test.body)
			if got := reader.OptionalNumber("a.b"); got != test.want || outcome(reader) != test.fault {
				t.Errorf("OptionalNumber = %q with %q", got, outcome(reader))
			}
		})
	}
}

func TestTextList(t *testing.T) {
	tests := []struct{ name, value, want, fault string }{
		{"one", `["x"]`, "x", ""},
		{"two", `["x","y"]`, "x,y", ""},
		{"null", `null`, "", "missing in a"},
		{"none", `[]`, "", "invalid in a"},
		{"too many", `["x","y","z"]`, "", "invalid in a"},
		{"a text", `"x"`, "", "invalid in a"},
		{"number inside", `["x",1]`, "", "invalid in a"},
		{"null inside", `[null]`, "", "invalid in a"},
		{"empty inside", `[""]`, "", "invalid in a"},
		{"too long inside", `["12345"]`, "", "invalid in a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			reader := parse(t, `{"a":`+test.value+`}`)
			got := strings.Join(reader.TextList("a", 2, 4), ",")
			if got != test.want || outcome(reader) != test.fault {
				t.Errorf("Texts = %q with %q", got, outcome(reader))
			}
		})
	}
}

func TestHasObject(t *testing.T) {
	tests := []struct {
		name, body string
		want       bool
		fault      string
	}{
		{"there", `{"a":{"b":{}}}`, true, ""},
		{"absent", `{"a":{}}`, false, ""},
		{"null", `{"a":{"b":null}}`, false, ""},
		{"array", `{"a":{"b":[]}}`, false, "invalid in a.b"},
		{"text", `{"a":{"b":"x"}}`, false, "invalid in a.b"},
		{"parent a text", `{"a":"x"}`, false, "invalid in a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			reader := parse(t, test.body)
			if got := reader.HasObject("a.b"); got != test.want || outcome(reader) != test.fault {
				t.Errorf("Object = %v with %q", got, outcome(reader))
			}
		})
	}
}

// All parts are read in one pass, and the first fault in the order of asking is the one that is told.
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
		{"without a key", `{"otp_code":"1234","b":{"otp_code":"kept"}}`, `{"b":{"otp_code":"kept"}}`, []string{"otp_code"}},
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
