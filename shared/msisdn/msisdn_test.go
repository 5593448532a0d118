package msisdn_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mobilegateway/shared/market"
	"mobilegateway/shared/msisdn"
)

// examples has one plausible national number of each country, and for countries with a trunk zero the same with it.
var examples = map[string]string{
	"CI": "0701020304",
	"CD": "812345678",
	"CM": "671234567",
	"SN": "771234567",
	"TN": "20123456",
	"BF": "70123456",
}

func TestEveryCountryInEveryForm(t *testing.T) {
	for _, c := range market.All() {
		national, found := examples[c.Alpha2]
		if !found {
			t.Errorf("there is no example of %s", c.Name)
			continue
		}
		e164 := "+" + c.CallingCode + national
		accepted := map[string]string{
			"national":          national,
			"plus":              e164,
			"00":                "00" + c.CallingCode + national,
			"bare calling code": c.CallingCode + national,
		}
		refused := map[string]error{
			national + "1":                    msisdn.ErrLength,
			national[:len(national)-1]:        msisdn.ErrLength,
			e164 + "1":                        msisdn.ErrLength,
			e164[:len(e164)-1]:                msisdn.ErrLength,
			"00" + national:                   msisdn.ErrCountry,
			"+33612345678":                    msisdn.ErrCountry,
			"0033612345678":                   msisdn.ErrCountry,
			"+" + national:                    msisdn.ErrCountry,
			"+0" + c.CallingCode + national:   msisdn.ErrCountry,
			"+" + c.CallingCode:               msisdn.ErrLength,
			"":                                msisdn.ErrFormat,
			"+":                               msisdn.ErrFormat,
			"++" + c.CallingCode + national:   msisdn.ErrFormat,
			" " + national:                    msisdn.ErrFormat,
			national[:2] + " " + national[2:]: msisdn.ErrFormat,
			national[:2] + "-" + national[2:]: msisdn.ErrFormat,
			"tel:" + e164:                     msisdn.ErrFormat,
			strings.Replace(national, "0", "\u0660", 1) + "x": msisdn.ErrFormat,
		}
		if c.KeepsLeadingZero {
			refused["0"+national] = nil // for any reason: 00 is the international prefix
			accepted["leading zero"] = national
		} else {
			accepted["trunk zero"] = "0" + national
			refused["+"+c.CallingCode+"0"+national] = msisdn.ErrLength
			refused["+"+c.CallingCode+"0"+national[1:]] = msisdn.ErrLength
			refused["0"+national[1:]] = nil
		}
		for form, text := range accepted {
			t.Run(c.Name+" "+form, func(t *testing.T) {
				number, err := msisdn.Parse(text, c)
				if err != nil || number.E164() != e164 {
					t.Errorf("Parse(%q) = %q, %v, want %q", text, number.E164(), err, e164)
				}
			})
		}
		for text, want := range refused {
			t.Run(c.Name+" refuses "+text, func(t *testing.T) {
				if number, err := msisdn.Parse(text, c); err == nil || (want != nil && !errors.Is(err, want)) {
					t.Errorf("Parse(%q) = %q, %v, want %v", text, number.E164(), err, want)
				}
			})
		}
	}
}

// Ivory Coast's numbers have had ten digits since 2021; the zero at their head is not a trunk prefix. Burkina Faso's
// mobile numbers begin with 01 to 07 as well as with 5, 6 and 7.
func TestLeadingZeroBelongsToTheNumber(t *testing.T) {
	tests := []struct{ country, text, want string }{
		{"CI", "0101020304", "+2250101020304"},
		{"CI", "0501020304", "+2250501020304"},
		{"CI", "2250701020304", "+2250701020304"},
		{"CI", "2721020304", "+2252721020304"},
		{"BF", "01020304", "+22601020304"},
		{"BF", "+22607020304", "+22607020304"},
	}
	for _, test := range tests {
		c, _ := market.ByAlpha2(test.country)
		number, err := msisdn.Parse(test.text, c)
		if err != nil || number.E164() != test.want {
			t.Errorf("Parse(%q, %s) = %q, %v", test.text, test.country, number.E164(), err)
		}
	}
	ci, _ := market.ByAlpha2("CI")
	if number, err := msisdn.Parse("+225701020304", ci); err == nil {
		t.Errorf("a number without its leading zero became %q", number.E164())
	}
}

// A national number that begins as the calling code does differs from an international one by its length.
func TestNationalNumberThatBeginsWithTheCallingCode(t *testing.T) {
	tn, _ := market.ByAlpha2("TN")
	number, err := msisdn.Parse("21612345", tn)
	if err != nil || number.E164() != "+21621612345" {
		t.Errorf("Parse = %q, %v", number.E164(), err)
	}
}

func TestAllFormsOfANumberAreOneNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(market.All()).Draw(t, "country")
		length := rapid.SampledFrom(c.NationalLengths).Draw(t, "length")
		digits := rapid.SliceOfN(rapid.SampledFrom([]byte("0123456789")), length, length).Draw(t, "digits")
		if digits[0] == '0' && !c.KeepsLeadingZero {
			digits[0] = '7'
		}
		if digits[0] == '0' && digits[1] == '0' {
			digits[1] = '7' // 00 is the international prefix; no plan has it
		}
		national := string(digits)
		want := "+" + c.CallingCode + national
		for _, text := range []string{national, want, want[1:], "00" + want[1:]} {
			number, err := msisdn.Parse(text, c)
			if err != nil || number.E164() != want {
				t.Fatalf("Parse(%q, %s) = %q, %v", text, c.Alpha2, number.E164(), err)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for index, c := range market.All() {
		f.Add(examples[c.Alpha2], index)
		f.Add("+"+c.CallingCode+examples[c.Alpha2], index)
		f.Add("00"+c.CallingCode+examples[c.Alpha2], index)
	}
	f.Fuzz(func(t *testing.T, text string, index int) {
		countries := market.All()
		c := countries[uint(index)%uint(len(countries))]
		number, err := msisdn.Parse(text, c)
		if err != nil {
			if number != (msisdn.Number{}) {
				t.Fatalf("Parse(%q) failed with a number", text)
			}
			return
		}
		national, hasCode := strings.CutPrefix(number.E164(), "+"+c.CallingCode)
		if !hasCode || !strings.HasSuffix(text, national) {
			t.Fatalf("Parse(%q) = %q", text, number.E164())
		}
		again, err := msisdn.Parse(number.E164(), c)
		if err != nil || again != number {
			t.Fatalf("%q became %q, %v", number.E164(), again.E164(), err)
		}
	})
}
