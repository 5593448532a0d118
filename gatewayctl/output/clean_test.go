package output

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMaskQueries(t *testing.T) {
	for text, want := range map[string]string{
		"https://a.example/n":                          "https://a.example/n",
		"https://a.example/n?key=s3cret&b=1":           "https://a.example/n?***",
		"to https://a.example/?s3cret, https://b.c/x?": "to https://a.example/?***, https://b.c/x?***",
		`{"url":"https://a.example/?s3cret",` + "\n":   `{"url":"https://a.example/?***",` + "\n",
		"is it done?":                                      "is it done?",
		"--url 'https://a.example/?a=b?s3cret'":            "--url 'https://a.example/?***'",
		"https://a.example?s3cret: refused":                "https://a.example?***: refused",
		"https://a.example/n?a='s3cret":                    "https://a.example/n?***",
		"https://a.example/n?a=(b)s3cret":                  "https://a.example/n?***",
		"https://a.example/n?a=<b>`s3cret end":             "https://a.example/n?*** end",
		`"url": "https://a/?a\u0026b=s3cret"`:              `"url": "https://a/?***"`,
		`"why": "\"https://a/?s3cret\", n"`:                `"why": "\"https://a/?***\", n"`,
		"(see https://a.example/?s3cret)":                  "(see https://a.example/?***)",
		"--url 'https://a.example/?token=s3cret(1)'":       "--url 'https://a.example/?***'",
		"(see https://a.example/?token=s3cret(1))":         "(see https://a.example/?***)",
		"--url 'https://a.example/(x)/?s3cret'":            "--url 'https://a.example/(x)/?***'",
		`--url 'https://a.example/"'\''<?s3cret' --yes`:    `--url 'https://a.example/"'\''<?***' --yes`,
		`https://a.example/n?a="s3cret",b=s3cret: refused`: "https://a.example/n?***: refused",
	} {
		if got := MaskQueries(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Invisible characters cannot reorder, hide or colour what a terminal shows; JSON keeps its meaning.
func TestEscapeUnprintable(t *testing.T) {
	for _, char := range []rune{
		0, 7, 27, '\r', 0x7f, 0x85, 0x9b, 0xad, 0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c,
		0x202d, 0x202e, 0x2060, 0x2066, 0x2067, 0x2068, 0x2069, 0xfe0f, 0xfeff, 0xe000, 0xe0001, 0xe0041, 0xe0100,
	} {
		escaped := EscapeUnprintable("a" + string(char) + "b")
		if strings.ContainsRune(escaped, char) {
			t.Errorf("%U stays in %q", char, escaped)
		}
		var text string
		if err := json.Unmarshal([]byte(`"`+escaped+`"`), &text); err != nil || text != "a"+string(char)+"b" {
			t.Errorf("%U: JSON reads %q: %v", char, text, err)
		}
	}
	for _, text := range []string{"é ü ش 漢 😀 -\t|\n", "\xff\xc3 half a character"} {
		if got := EscapeUnprintable(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
