package smstext_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"mobilegateway/shared/smstext"
)

// Decision "sms-text".
func TestDecode(t *testing.T) {
	tests := []struct {
		name, value, text string
		characters        int
	}{
		{"plain word", "Hello", "Hello", 5},
		{"escaped space", "Hello%20world", "Hello world", 11},
		{"raw space is literal", "Hello world", "Hello world", 11},
		{"raw space makes escapes literal", "Hello world%21", "Hello world%21", 14},
		{"plus is not a space", "1+1%3D2", "1+1=2", 5},
		{"escaped plus", "%2B225", "+225", 4},
		{"escaped percent", "50%25", "50%", 3},
		{"decoded once", "%2520", "%20", 3},
		{"percent at the end", "100%", "100%", 4},
		{"percent with one digit", "100%2", "100%2", 5},
		{"percent with other letters", "100%zz", "100%zz", 6},
		{"one bad escape spoils all", "a%20b%", "a%20b%", 6},
		{"lower and upper case digits", "%c3%A9", "é", 1},
		{"French, escaped", "Votre%20paiement%20est%20accept%C3%A9", "Votre paiement est accepté", 26},
		{"French, raw", "accepté", "accepté", 7},
		{"raw non-ASCII makes escapes literal", "é%20", "é%20", 4},
		{"escapes that are not UTF-8", "%E9t%E9", "%E9t%E9", 7},
		{"half a character", "%C3", "%C3", 3},
		{"overlong UTF-8", "%C0%AF", "%C0%AF", 6},
		{"surrogate in UTF-8", "%ED%A0%80", "%ED%A0%80", 9},
		{"emoji is one character", "%F0%9F%98%80", "😀", 1},
		{"escaped line end", "a%0Ab", "a\nb", 3},
		{"raw line end is literal", "a\nb%20", "a\nb%20", 6},
		{"empty", "", "", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text, characters := smstext.Decode(test.value)
			if text != test.text || characters != test.characters {
				t.Errorf("Decode(%q) = %q, %d, want %q, %d", test.value, text, characters, test.text, test.characters)
			}
		})
	}
}

// Specification, Limits: the 160 are decoded characters, so that an escaped value may be nine times as long.
func TestLimitCountsDecodedCharacters(t *testing.T) {
	for value, want := range map[string]int{
		strings.Repeat("a", 160):            160,
		strings.Repeat("%C3%A9", 160):       160,
		strings.Repeat("%E2%82%AC", 161):    161,
		strings.Repeat("é", 161):            161,
		strings.Repeat("a", 159) + "%20":    160,
		strings.Repeat("a", 158) + " %20":   162,
		strings.Repeat("%F0%9F%98%80", 160): smstext.MaxCharacters,
	} {
		if _, got := smstext.Decode(value); got != want {
			t.Errorf("%d characters in %.20q..., want %d", got, value, want)
		}
	}
}

func TestEscapedTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		got, characters := smstext.Decode(url.PathEscape(text))
		if got != text || characters != utf8.RuneCountInString(text) {
			t.Fatalf("%q came back as %q, %d", text, got, characters)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"Hello%20world", "100%", "%C3%A9", "%E9", "a+b", "é%20", "%2520", "%", "%0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		text, characters := smstext.Decode(value)
		if characters != utf8.RuneCountInString(text) || len(text) > len(value) {
			t.Fatalf("Decode(%q) = %q, %d", value, text, characters)
		}
		if text != value && (!utf8.ValidString(text) || strings.ContainsAny(value, " \n")) {
			t.Fatalf("Decode(%q) = %q", value, text)
		}
		if utf8.ValidString(value) && !utf8.ValidString(text) {
			t.Fatalf("Decode(%q) broke UTF-8", value)
		}
	})
}
