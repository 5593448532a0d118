package ascii_test

import (
	"testing"

	"mobilegateway/shared/ascii"
)

func TestConsistsOf(t *testing.T) {
	for text, want := range map[string]struct{ isDigits, isWord bool }{
		"": {}, "0": {true, true}, "0123456789": {true, true}, "12a": {false, true}, "azAZ09": {false, true},
		"1 2": {}, " 12": {}, "-12": {}, "1.2": {}, "é": {}, "١": {}, "1\n": {},
	} {
		if got := ascii.IsDigits(text); got != want.isDigits {
			t.Errorf("IsDigits(%q): %v, want %v", text, got, want.isDigits)
		}
		if got := ascii.ConsistsOf(text, ascii.Letters+ascii.Digits); got != want.isWord {
			t.Errorf("ConsistsOf(%q): %v, want %v", text, got, want.isWord)
		}
	}
}
