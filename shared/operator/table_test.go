package operator_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/market"
	"mobilegateway/shared/operator"
)

func TestRowsAreComplete(t *testing.T) {
	want := []string{"sandbox", "orange", "mtn", "wave", "moov", "airtel", "vodacom", "free", "flouci"}
	if diff := cmp.Diff(want, operator.Names()); diff != "" {
		t.Errorf("operators (-want +got):\n%s", diff)
	}
	seen := map[string]bool{}
	for _, name := range operator.Platforms() {
		row, ok := operator.FindCapabilities(strings.ToUpper(name))
		if !ok || row.Platform != name || name != strings.ToLower(name) || seen[name] || strings.Contains(name, "/") {
			t.Errorf("%s: not found by its own name, not lower case, with a slash, or twice", name)
		}
		seen[name] = true
		checkRow(t, row)
	}
	if _, ok := operator.FindCapabilities("unknown"); ok {
		t.Error("an unknown platform was found")
	}
}

func checkRow(t *testing.T, row operator.Capabilities) {
	t.Helper()
	pays := slices.Contains(row.Operations, operator.AccountPay)
	if row.DriverName == "" || len(row.Reach) == 0 || len(row.Operations) == 0 || pays != (len(row.Channels) > 0) {
		t.Errorf("%s: a driver, operators and operations are required, and channels exactly for payments", row.Platform)
	}
	for _, reach := range row.Reach {
		for _, code := range reach.Countries {
			if c, known := market.ByAlpha2(code); !known || c.Alpha2 != code {
				t.Errorf("%s: country %s is not in the market table as written", row.Platform, code)
			}
		}
	}
	for _, channel := range row.Channels {
		if !slices.Contains(operator.Channels(), channel) {
			t.Errorf("%s: channel %s", row.Platform, channel)
		}
	}
	if row.ResendWindow < 0 || row.NeverSentAfter != 0 && row.NeverSentAfter < 10*time.Minute {
		t.Errorf("%s: a negative window, or NeverSentAfter under 10 minutes", row.Platform)
	}
}

// The three rows with the specification's own protocol, so that an accidental change is noticed.
func TestGatewayRows(t *testing.T) {
	for _, name := range []string{"sandbox", "orange", "mtn"} {
		row, _ := operator.FindCapabilities(name)
		want := operator.Capabilities{
			Platform: name, DriverName: "gateway", ResendWindow: 24 * time.Hour, HasStatusLookup: true,
			ExpiresPending:   true,
			Reach:            []operator.Reach{{Operator: name, Countries: market.Alpha2s()}},
			Channels:         operator.Channels(),
			Operations:       []string{"charge", "pay", "sms"},
			UserSMSTemplates: row.UserSMSTemplates,
		}
		if diff := cmp.Diff(want, row); diff != "" {
			t.Errorf("row of %s (-want +got):\n%s", name, diff)
		}
	}
}

// Every template contains each placeholder once and fits with the longest values. It uses only the GSM 7-bit alphabet,
// in which a message has 160 characters.
func TestUserSMSFits(t *testing.T) {
	longest := operator.UserSMSValues{
		Amount:   "999999999999.999",
		Currency: "XOF",
		Merchant: strings.Repeat("M", 20),
		OrderID:  strings.Repeat("9", 30),
	}
	for _, name := range operator.Platforms() {
		row, _ := operator.FindCapabilities(name)
		if row.SendsUserSMS {
			continue
		}
		for _, template := range []string{row.UserSMSTemplates.FR, row.UserSMSTemplates.EN} {
			for _, placeholder := range []string{"{amount}", "{currency}", "{merchant}", "{order_id}"} {
				if strings.Count(template, placeholder) != 1 {
					t.Errorf("%s: %s is not exactly once in %q", name, placeholder, template)
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
			t.Errorf("%s: %q, want %q", lang, got, text)
		}
	}
	values.Merchant = strings.Repeat("é", 200)
	got := row.UserSMSTemplates.Render("fr", values)
	if utf8.RuneCountInString(got) != operator.MaxUserSMSLength || !utf8.ValidString(got) {
		t.Errorf("a text over the limit is truncated to %q", got)
	}
}
