package market_test

import (
	"slices"
	"strings"
	"testing"

	"mobilegateway/shared/market"
)

// The specification's table of countries with the facts of ISO 4217 and of the number plans, written a second time so
// that a slip in a row shows.
func TestTheSixCountries(t *testing.T) {
	want := []string{
		"Ivory Coast CI OCI XOF 0 tel:+225 10 zero",
		"DR Congo CD ODC USD 2 tel:+243 9 units",
		"Cameroon CM OCM XAF 0 tel:+237 9",
		"Senegal SN OSN XOF 0 tel:+221 9",
		"Tunisia TN OTN TND 3 tel:+216 8",
		"Burkina Faso BF OBF XOF 0 tel:+226 8 zero",
	}
	var got []string
	for _, c := range market.All() {
		words := []string{c.Name, c.Alpha2, c.MCO, c.Currency, digit(c.Exponent), c.SenderPrefix()}
		for _, length := range c.NationalLengths {
			words = append(words, digit(length))
		}
		if c.ChargesInMinorUnits {
			words = append(words, "units")
		}
		if c.KeepsLeadingZero {
			words = append(words, "zero")
		}
		got = append(got, strings.Join(words, " "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("countries:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func digit(n int) string {
	if n == 10 {
		return "10"
	}
	return string(rune('0' + n))
}

func TestEveryRowIsCompleteAndUnique(t *testing.T) {
	seen := map[string]string{}
	once := func(column, value, country string) {
		if value == "" {
			t.Errorf("%s: %s is empty", country, column)
		}
		if other, twice := seen[column+value]; twice {
			t.Errorf("%s and %s share %s %s", other, country, column, value)
		}
		seen[column+value] = country
	}
	for _, c := range market.All() {
		once("name", c.Name, c.Name)
		once("alpha-2", c.Alpha2, c.Name)
		once("MCO", c.MCO, c.Name)
		once("calling code", c.CallingCode, c.Name)
		if len(c.Alpha2) != 2 || strings.ToUpper(c.Alpha2) != c.Alpha2 {
			t.Errorf("%s: alpha-2 code %q", c.Name, c.Alpha2)
		}
		if len(c.Currency) != 3 || c.Exponent < 0 || c.Exponent > 4 {
			t.Errorf("%s: currency %q with exponent %d", c.Name, c.Currency, c.Exponent)
		}
		if c.ChargesInMinorUnits && c.Exponent != 2 {
			t.Errorf("%s: a unit is a hundredth, so that units need exponent 2", c.Name)
		}
	}
}

// A number without "+" is read by its length: no national number may be as long as one with the calling code.
func TestNumberPlansDifferByLength(t *testing.T) {
	for _, c := range market.All() {
		if len(c.NationalLengths) == 0 {
			t.Errorf("%s: no national length", c.Name)
		}
		for _, national := range c.NationalLengths {
			if len(c.CallingCode)+national > 15 {
				t.Errorf("%s: longer than E.164 allows", c.Name)
			}
			for _, other := range c.NationalLengths {
				if national == len(c.CallingCode)+other || national == other+1 {
					t.Errorf("%s: %d digits have two readings", c.Name, national)
				}
			}
		}
	}
}

func TestByAlpha2(t *testing.T) {
	for _, c := range market.All() {
		for _, code := range []string{c.Alpha2, strings.ToLower(c.Alpha2)} {
			if got, ok := market.ByAlpha2(code); !ok || got.Name != c.Name {
				t.Errorf("ByAlpha2(%q) = %q, %v", code, got.Name, ok)
			}
		}
	}
	for _, code := range []string{"", "C", "FR", "CIV", " CI"} {
		if got, ok := market.ByAlpha2(code); ok {
			t.Errorf("ByAlpha2(%q) = %q", code, got.Name)
		}
	}
}

func TestByMCO(t *testing.T) {
	for _, c := range market.All() {
		for _, code := range []string{c.MCO, "O" + c.Alpha2} {
			if got, ok := market.ByMCO(code); !ok || got.Name != c.Name {
				t.Errorf("ByMCO(%q) = %q, %v", code, got.Name, ok)
			}
		}
	}
	for _, code := range []string{"", "O", "oci", "CI", "OFR", "OCI "} {
		if got, ok := market.ByMCO(code); ok {
			t.Errorf("ByMCO(%q) = %q", code, got.Name)
		}
	}
}

func TestListsFollowTheTableAndAreCopies(t *testing.T) {
	if got := market.Alpha2s(); !slices.Equal(got, []string{"CI", "CD", "CM", "SN", "TN", "BF"}) {
		t.Errorf("Alpha2s() = %v", got)
	}
	if got := market.MCOs(); !slices.Equal(got, []string{"OCI", "ODC", "OCM", "OSN", "OTN", "OBF"}) {
		t.Errorf("MCOs() = %v", got)
	}
	market.All()[0].Name = "changed"
	if market.All()[0].Name != "Ivory Coast" {
		t.Error("All() gives the table itself away")
	}
}
