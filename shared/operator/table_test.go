package operator_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"mobilegateway/shared/market"
	"mobilegateway/shared/operator"
)

func TestRowsAreComplete(t *testing.T) {
	if got := operator.Names(); !slices.Equal(got, []string{"sandbox", "orange", "mtn"}) {
		t.Fatalf("names are %v", got)
	}
	seen := map[string]bool{}
	for _, name := range operator.Names() {
		row, ok := operator.FindCapabilities(name)
		if !ok || row.Operator != name || name != strings.ToLower(name) || seen[name] {
			t.Errorf("%s: not found by its own name, not lower case, or twice", name)
		}
		seen[name] = true
		if row.DriverName == "" || len(row.Countries) == 0 || len(row.Channels) == 0 {
			t.Errorf("%s: a driver, countries and channels are required", name)
		}
		for _, code := range row.Countries {
			if c, known := market.ByAlpha2(code); !known || c.Alpha2 != code {
				t.Errorf("%s: country %s is not in the market table as written", name, code)
			}
		}
		for _, channel := range row.Channels {
			if !slices.Contains([]string{"web", "tpe", "ussd"}, channel) {
				t.Errorf("%s: channel %s", name, channel)
			}
		}
		if row.IdempotencyWindow < 0 {
			t.Errorf("%s: RepeatSafeFor is negative", name)
		}
	}
}

// The rows of the brief for the first three operators, so that a slip in one is seen.
func TestGatewayRows(t *testing.T) {
	for _, name := range []string{"sandbox", "orange", "mtn"} {
		row, _ := operator.FindCapabilities(strings.ToUpper(name))
		if row.DriverName != "gateway" || !slices.Equal(row.Countries, market.Alpha2s()) || len(row.Channels) != 3 {
			t.Errorf("%s: %+v", name, row)
		}
		if row.IdempotencyWindow.Hours() != 24 || !row.HasStatusLookup || row.OTPRule != operator.OTPOptional || row.SendsUserSMS {
			t.Errorf("%s: %+v", name, row)
		}
	}
	if _, ok := operator.FindCapabilities("nobody"); ok {
		t.Error("an unknown operator was found")
	}
}

func TestFirstServing(t *testing.T) {
	cases := []struct {
		name    string
		names   []string
		country string
		want    string
	}{
		{"first that serves", []string{"mtn", "orange"}, "CI", "mtn"},
		{"case of name and country", []string{"Orange"}, "ci", "orange"},
		{"unknown ones are passed over", []string{"gone", "sandbox"}, "SN", "sandbox"},
		{"no such country", []string{"orange"}, "FR", ""},
		{"none of the merchant's", nil, "CI", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			row, ok := operator.FirstServing(c.names, c.country)
			if ok != (c.want != "") || row.Operator != c.want {
				t.Fatalf("got %q, %v", row.Operator, ok)
			}
		})
	}
}

// Every row's wording has each placeholder once in each language, fits with the longest values, and uses only
// characters of the GSM 7-bit alphabet, in which 160 of them are one message.
func TestUserSMSFits(t *testing.T) {
	longest := operator.UserSMSValues{
		Amount:   "999999999999.999",
		Currency: "XOF",
		Merchant: strings.Repeat("M", 20),
		OrderID:  strings.Repeat("9", 30),
	}
	for _, name := range operator.Names() {
		row, _ := operator.FindCapabilities(name)
		if row.SendsUserSMS {
			continue
		}
		for _, template := range []string{row.UserSMSTemplates.FR, row.UserSMSTemplates.EN} {
			for _, placeholder := range []string{"{amount}", "{currency}", "{merchant}", "{order_id}"} {
				if strings.Count(template, placeholder) != 1 {
					t.Errorf("%s: %s does not stand once in %q", name, placeholder, template)
				}
			}
		}
		for _, lang := range []string{"fr", "en", "pt"} {
			text := row.UserSMSTemplates.Render(lang, longest)
			if n := utf8.RuneCountInString(text); n > operator.MaxUserSMSLength || strings.ContainsAny(text, "{}") {
				t.Errorf("%s %s: %d characters: %q", name, lang, n, text)
			}
			if !strings.Contains(text, longest.OrderID) {
				t.Errorf("%s %s: the order was cut off: %q", name, lang, text)
			}
			for _, char := range text {
				if char > 127 && !strings.ContainsRune("éèùàìòÇñö", char) {
					t.Errorf("%s %s: %q is not in the GSM alphabet", name, lang, char)
				}
			}
		}
	}
}

func TestUserSMSText(t *testing.T) {
	row, _ := operator.FindCapabilities("orange")
	values := operator.UserSMSValues{Amount: "1500", Currency: "XOF", Merchant: "DemoShop", OrderID: "DemoShop_42"}
	want := map[string]string{
		"fr": "Orange Money : votre paiement de 1500 XOF à DemoShop est confirmé. Réf. DemoShop_42",
		"en": "Orange Money: your payment of 1500 XOF to DemoShop is confirmed. Ref. DemoShop_42",
		"de": "Orange Money: your payment of 1500 XOF to DemoShop is confirmed. Ref. DemoShop_42",
	}
	for lang, text := range want {
		if got := row.UserSMSTemplates.Render(lang, values); got != text {
			t.Errorf("%s: %q", lang, got)
		}
	}
	values.Merchant = strings.Repeat("é", 200)
	if got := row.UserSMSTemplates.Render("fr", values); utf8.RuneCountInString(got) != operator.MaxUserSMSLength || !utf8.ValidString(got) {
		t.Errorf("an impossible merchant gave %q", got)
	}
}
