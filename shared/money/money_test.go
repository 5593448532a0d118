package money_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name     string
		text     string
		exponent int
		want     int64
		err      error
	}{
		{"whole XOF", "500", 0, 500, nil},
		{"XOF with zeros beyond the exponent", "500.00", 0, 500, nil},
		{"XOF with a decimal", "500.5", 0, 0, money.ErrPrecision},
		{"XOF with a late decimal", "500.0001", 0, 0, money.ErrPrecision},
		{"TND in full", "1.500", 3, 1500, nil},
		{"TND short", "1.5", 3, 1500, nil},
		{"TND whole", "1", 3, 1000, nil},
		{"TND smallest", "0.001", 3, 1, nil},
		{"TND too fine", "1.0005", 3, 0, money.ErrPrecision},
		{"TND fine but zeros", "1.500000000000", 3, 1500, nil},
		{"USD", "19.99", 2, 1999, nil},
		{"leading zeros", "0015", 0, 15, nil},
		{"twelve digits", "999999999999", 3, 999999999999000, nil},
		{"largest", "999999999999.999999", 6, 999999999999999999, nil},
		{"thirteen digits", "1000000000000", 0, 0, money.ErrFormat},
		{"thirteen digits by zeros", "0000000000001", 0, 0, money.ErrFormat},
		{"as many decimals as may be", "1." + strings.Repeat("0", 48), 0, 1, nil},
		{"one decimal more", "1." + strings.Repeat("0", 49), 0, 0, money.ErrFormat},
		{"many decimals, the last no zero", "1." + strings.Repeat("0", 47) + "1", 3, 0, money.ErrPrecision},
		{"zero", "0", 0, 0, money.ErrNotPositive},
		{"zero with decimals", "0.00", 2, 0, money.ErrNotPositive},
		{"minus", "-5", 0, 0, money.ErrFormat},
		{"minus zero", "-0", 0, 0, money.ErrFormat},
		{"plus", "+5", 0, 0, money.ErrFormat},
		{"exponent", "1e3", 0, 0, money.ErrFormat},
		{"upper exponent", "1E3", 0, 0, money.ErrFormat},
		{"space", " 5", 0, 0, money.ErrFormat},
		{"grouping", "1,000", 0, 0, money.ErrFormat},
		{"underscore", "1_000", 0, 0, money.ErrFormat},
		{"hexadecimal", "0x10", 0, 0, money.ErrFormat},
		{"empty", "", 0, 0, money.ErrFormat},
		{"only a point", ".", 0, 0, money.ErrFormat},
		{"nothing before the point", ".5", 2, 0, money.ErrFormat},
		{"nothing after the point", "5.", 2, 0, money.ErrFormat},
		{"two points", "1.2.3", 2, 0, money.ErrFormat},
		{"digits of another script", "١٢", 0, 0, money.ErrFormat},
		{"exponent too large", "1", 7, 0, money.ErrExponent},
		{"exponent negative", "1", -1, 0, money.ErrExponent},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := money.Parse(test.text, test.exponent)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("Parse(%q, %d) = %d, %v, want %d, %v", test.text, test.exponent, got, err, test.want, test.err)
			}
		})
	}
}

// Specification, Limits: 15 means 0.15 USD.
func TestParseMinorUnits(t *testing.T) {
	tests := []struct {
		text string
		want int64
		err  error
	}{
		{"15", 15, nil},
		{"15.00", 15, nil},
		{"15.5", 0, money.ErrPrecision},
		{"0.15", 0, money.ErrPrecision},
		{"0", 0, money.ErrNotPositive},
		{"-1", 0, money.ErrFormat},
	}
	for _, test := range tests {
		got, err := money.ParseMinorUnits(test.text)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("ParseUnits(%q) = %d, %v, want %d, %v", test.text, got, err, test.want, test.err)
		}
	}
	if got := money.Format(15, 2); got != "0.15" {
		t.Errorf("15 units are %s USD", got)
	}
}

func TestFormat(t *testing.T) {
	tests := []struct {
		minor    int64
		exponent int
		want     string
	}{
		{500, 0, "500"},
		{1500, 3, "1.500"},
		{1, 3, "0.001"},
		{12, 2, "0.12"},
		{100, 2, "1.00"},
		{0, 2, "0.00"},
		{-150, 2, "-1.50"},
		{-9223372036854775808, 3, "-9223372036854775.808"},
		{7, -1, "7"},
	}
	for _, test := range tests {
		if got := money.Format(test.minor, test.exponent); got != test.want {
			t.Errorf("Format(%d, %d) = %q, want %q", test.minor, test.exponent, got, test.want)
		}
	}
}

func exponents() *rapid.Generator[int] {
	all := []int{}
	for _, c := range market.All() {
		all = append(all, c.Exponent)
	}
	return rapid.SampledFrom(append(all, money.MaxExponent))
}

func TestFormattedAmountParsesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		exponent := exponents().Draw(t, "exponent")
		minor := rapid.Int64Range(1, 999_999_999_999).Draw(t, "minor")
		got, err := money.Parse(money.Format(minor, exponent), exponent)
		if err != nil || got != minor {
			t.Fatalf("%d became %d, %v", minor, got, err)
		}
	})
}

func TestZerosAtBothEndsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		exponent := exponents().Draw(t, "exponent")
		whole := rapid.StringMatching(`[0-9]{1,9}`).Draw(t, "whole")
		decimals := rapid.StringMatching(`[0-9]{6}`).Draw(t, "decimals")[:exponent]
		plain := whole
		if decimals != "" {
			plain += "." + decimals
		}
		padded := "00" + whole + "." + decimals + "000"
		first, firstErr := money.Parse(plain, exponent)
		second, secondErr := money.Parse(padded, exponent)
		if first != second || !errors.Is(secondErr, firstErr) {
			t.Fatalf("%q is %d, %v; %q is %d, %v", plain, first, firstErr, padded, second, secondErr)
		}
	})
}

// The sum of two parsed amounts is the sum of their digits: no float is hidden anywhere.
func TestParseKeepsSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		exponent := exponents().Draw(t, "exponent")
		a := rapid.Int64Range(1, 400_000_000_000).Draw(t, "a")
		b := rapid.Int64Range(1, 400_000_000_000).Draw(t, "b")
		first, _ := money.Parse(money.Format(a, exponent), exponent)
		second, _ := money.Parse(money.Format(b, exponent), exponent)
		if first+second != a+b {
			t.Fatalf("%d + %d became %d", a, b, first+second)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"500", "500.00", "1.5", "-0", "1e3", ".5", "5.", "999999999999.999", "00",
		"1.0000000000000"} {
		f.Add(seed, 3)
	}
	form := regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,48})?$`)
	f.Fuzz(func(t *testing.T, text string, exponent int) {
		minor, err := money.Parse(text, exponent)
		if err != nil {
			if minor != 0 {
				t.Fatalf("Parse(%q) failed with %d, %v", text, minor, err)
			}
			return
		}
		if !form.MatchString(text) || minor <= 0 {
			t.Fatalf("Parse(%q, %d) = %d", text, exponent, minor)
		}
		again, err := money.Parse(money.Format(minor, exponent), exponent)
		if err != nil || again != minor {
			t.Fatalf("%d became %d, %v", minor, again, err)
		}
	})
}
