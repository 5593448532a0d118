package spreadsheet_test

import (
	"strings"
	"testing"

	"mobilegateway/shared/spreadsheet"
)

func TestEscapeFormulas(t *testing.T) {
	for text, want := range map[string]string{
		"":              "",
		"DemoShop_1":    "DemoShop_1",
		"a-b=c+d@e":     "a-b=c+d@e",
		"=1":            "'=1",
		"+225":          "'+225",
		"-1":            "'-1",
		"@SUM(A1)":      "'@SUM(A1)",
		" =1":           " '=1",
		"\"=1":          "\"'=1",
		"\u200b=1":      "\u200b'=1",
		"\uff1d1":       "'\uff1d1",
		"a;=1":          "a;'=1",
		"a, =1":         "a, '=1",
		"a;b":           "a;b",
		"\tx":           "'\tx",
		"a\n=1;@b":      "a\n'=1;'@b",
		"x==1":          "x==1",
		"==1":           "'==1",
		"été = 1":       "été = 1",
		"\x00=cmd|'/c'": "'\x00'=cmd|'/c'",
	} {
		if got := spreadsheet.EscapeFormulas(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// FuzzEscapeFormulas checks that no cell of an escaped text begins with a sign, with any separator, and that only
// apostrophes are added.
func FuzzEscapeFormulas(f *testing.F) {
	for _, seed := range []string{"=1", " ;=2", "\"\t@x", "a,+b", "\uff0b1", "'=1", "\xff=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		escaped := spreadsheet.EscapeFormulas(text)
		if strings.ReplaceAll(escaped, "'", "") != strings.ToValidUTF8(strings.ReplaceAll(text, "'", ""), "\ufffd") &&
			strings.ToValidUTF8(text, "") == text {
			t.Errorf("%q became %q", text, escaped)
		}
		separates := func(r rune) bool { return strings.ContainsRune(";,\t\r\n", r) }
		for cell := range strings.FieldsFuncSeq(escaped, separates) {
			if cell = strings.Trim(cell, "\" "); cell != "" && strings.ContainsAny(cell[:1], "=+-@") {
				t.Errorf("%q became %q, whose cell %q begins a formula", text, escaped, cell)
			}
		}
	})
}
