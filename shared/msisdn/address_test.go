package msisdn_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mobilegateway/shared/msisdn"
)

func TestParseSender(t *testing.T) {
	tests := []struct {
		name, text, want string
		ok               bool
	}{
		{"number", "tel:+2250700000000", "2250700000000", true},
		{"short code", "tel:+2250000", "2250000", true},
		{"three digits", "tel:+225", "225", true},
		{"fifteen digits", "tel:+123456789012345", "123456789012345", true},
		{"two digits", "tel:+22", "", false},
		{"sixteen digits", "tel:+1234567890123456", "", false},
		{"no plus", "tel:2250000", "", false},
		{"no scheme", "+2250000", "", false},
		{"upper case", "TEL:+2250000", "", false},
		{"space", "tel:+225 0000", "", false},
		{"still encoded", "tel%3A%2B2250000", "", false},
		{"letters", "tel:+225abc", "", false},
		{"empty", "", "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ok := msisdn.ParseSender(test.text)
			if got != test.want || ok != test.ok {
				t.Errorf("ParseSender(%q) = %q, %v", test.text, got, ok)
			}
		})
	}
}

func TestMask(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"number", "+2250701021001", "************01"},
		{"empty", "", ""},
		{"one", "7", "*"},
		{"two", "77", "**"},
		{"three", "771", "*71"},
		{"alias without digits at its end", "alias-xy", "********"},
		{"long", strings.Repeat("9", 300), strings.Repeat("*", 18) + "99"},
		{"long without digits", strings.Repeat("é", 300), strings.Repeat("*", 20)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := msisdn.Mask(test.text); got != test.want {
				t.Errorf("Mask(%q) = %q, want %q", test.text, got, test.want)
			}
		})
	}
}

func TestMaskKeepsAtMostTwoDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		masked := msisdn.Mask(rapid.String().Draw(t, "text"))
		rest := strings.TrimLeft(masked, "*")
		if len(rest) > 2 || strings.Trim(rest, "0123456789") != "" || len(masked) > 20 {
			t.Fatalf("masked to %q", masked)
		}
	})
}
