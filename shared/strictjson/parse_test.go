package strictjson_test

import (
	"errors"
	"strings"
	"testing"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/strictjson"
)

func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels-1) + `{}` + strings.Repeat("}", levels-1)
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ name, body, part string }{
		{"nothing", ``, "body"},
		{"spaces", `  `, "body"},
		{"not JSON", `{"a":}`, "body"},
		{"cut", `{"a":1`, "body"},
		{"trailing comma", `{"a":1,}`, "body"},
		{"comment", `{"a":1/**/}`, "body"},
		{"single quotes", `{'a':1}`, "body"},
		{"NaN", `{"a":NaN}`, "body"},
		{"leading zero", `{"a":01}`, "body"},
		{"leading plus", `{"a":+1}`, "body"},
		{"trailing value", `{} {}`, "body"},
		{"trailing bracket", `{}}`, "body"},
		{"byte order mark", "\ufeff{}", "body"},
		{"raw control character", "{\"a\":\"\n\"}", "body"},
		{"array at the root", `[]`, "body"},
		{"text at the root", `"a"`, "body"},
		{"number at the root", `1`, "body"},
		{"null at the root", `null`, "body"},
		{"invalid UTF-8 in a text", "{\"a\":\"\xff\"}", "body"},
		{"invalid UTF-8 in a key", "{\"\xc3\":1}", "body"},
		{"surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}", "body"},
		{"only a high surrogate", `{"a":"\ud83d"}`, "body"},
		{"high surrogate before a letter", `{"a":"\ud83dx"}`, "body"},
		{"high surrogate before an escape", `{"a":"\ud83d\n12345"}`, "body"},
		{"two high surrogates", `{"a":"\ud83d\ud83d"}`, "body"},
		{"two of the lowest low surrogates", `{"a":"\udc00\udc00"}`, "body"},
		{"only a low surrogate", `{"a":"\uDE00"}`, "body"},
		{"pair the wrong way round", `{"a":"\ude00\ud83d"}`, "body"},
		{"half a pair in a key", `{"\ud800":1}`, "body"},
		{"half a pair at the end", `{"a":["\ud800"]}`, "body"},
		{"too deep", nested(strictjson.MaxDepth + 1), "body"},
		{"too deep by arrays", `{"a":` + strings.Repeat("[", 16) + strings.Repeat("]", 16) + `}`, "body"},
		{"very deep", strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000), "body"},
		{"duplicate key", `{"a":1,"b":2,"a":1}`, "a"},
		{"duplicate key, one escaped", `{"a":1,"\u0061":2}`, "a"},
		{"duplicate key inside", `{"a":{"b":{"c":1,"c":1}}}`, "a.b.c"},
		{"duplicate key in an array", `{"a":[{},{"b":1,"b":2}]}`, "a[1].b"},
		{"duplicate key in arrays", `{"a":[[{"b":1,"b":2}]]}`, "a[0][0].b"},
		{"duplicate empty key", `{"":1,"":2}`, ""},
		{"duplicate with null", `{"a":null,"a":null}`, "a"},
		{"duplicate object", `{"a":{},"a":{}}`, "a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			reader, err := strictjson.Parse([]byte(test.body))
			var failure *fault.Fault
			if !errors.As(err, &failure) {
				t.Fatalf("Parse = %v, %v, want a fault", reader, err)
			}
			if reader != nil || failure.Kind != fault.InvalidPart || failure.Part != test.part {
				t.Errorf("Parse = %v, %v in %q, want invalid in %q", reader, failure.Kind, failure.Part, test.part)
			}
		})
	}
}

func TestParseAccepts(t *testing.T) {
	tests := []struct{ name, body string }{
		{"empty object", `{}`},
		{"spaces around", " \t\r\n{ } \n"},
		{"names that differ in case", `{"a":1,"A":2}`},
		{"one key in two objects", `{"a":{"x":1},"b":{"x":1}}`},
		{"one key in two elements", `{"a":[{"x":1},{"x":1}]}`},
		{"surrogate pair", `{"a":"\ud83d\ude00"}`},
		{"the outermost pairs", `{"a":"\ud800\udc00\udbff\udfff"}`},
		{"beside the surrogates", `{"a":"\ud7ff\ue000"}`},
		{"two pairs", `{"a":"\ud83d\ude00\uD83D\uDE00"}`},
		{"escaped backslash before u", `{"a":"\\ud83d"}`},
		{"escaped backslashes and a pair", `{"a":"\\\\\ud83d\ude00"}`},
		{"every escape", `{"a":"\"\\\/\b\f\n\r\t\u0041"}`},
		{"replacement character itself", `{"a":"\ufffd"}`},
		{"as deep as allowed", nested(strictjson.MaxDepth)},
		{"huge number", `{"a":1e999999}`},
		{"minus zero", `{"a":-0}`},
		{"unknown fields", `{"unknown":[true,false,null,{"x":[]}]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			reader, err := strictjson.Parse([]byte(test.body))
			if err != nil || reader == nil {
				t.Errorf("Parse = %v", err)
			}
		})
	}
}

// The cause of a refusal is logged, so it must not quote the body.
func TestFaultOmitsTheBody(t *testing.T) {
	for _, body := range []string{
		`{"otp_code":"482913"`, `482913`, `{"a":"482913\ud800"}`, "{\"a\":\"482913\xff\"}",
		`{"482913":1,"482913":2}`, `{"x482913":[{"b":1,"b":2}]}`,
	} {
		_, err := strictjson.Parse([]byte(body))
		if err == nil || strings.Contains(err.Error(), "482913") {
			t.Errorf("Parse(%q): error %v, want one without the body", body, err)
		}
	}
}
