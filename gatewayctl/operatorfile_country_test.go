package gatewayctl

import (
	"strings"
	"testing"
)

// An account whose key or environment is for one country serves no route of another.
func TestAccountOfAnotherCountry(t *testing.T) {
	for _, c := range []struct{ platform, field, value, country string }{
		{"wave-checkout", "access_token", "wave_sn_prod_x", "CI"},
		{"mtn-momo", "target_environment", "mtnivorycoast", "CM"},
		{"orange-webpay", "segment", "bf", "SN"},
	} {
		schema, err := findAccountSchema(c.platform)
		if err != nil {
			t.Fatal(err)
		}
		account := map[string]string{c.field: c.value}
		refused := func(country string) bool {
			want := c.field + " is for another country than " + country
			return strings.Contains(strings.Join(schema.unusable(account, "pay", country), "\n"), want)
		}
		own := map[string]string{"wave-checkout": "SN", "mtn-momo": "CI", "orange-webpay": "BF"}[c.platform]
		if !refused(c.country) || refused(own) {
			t.Errorf("%s %s: refused in %s %v, in %s %v", c.platform, c.value, c.country, refused(c.country), own,
				refused(own))
		}
	}
}

// A key of a wallet in another country moves the account, so it is refused while the account is in use.
func TestKeyOfAnotherCountryMovesTheAccount(t *testing.T) {
	schema, err := findAccountSchema("wave-checkout")
	if err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]bool{"wave_sn_prod_y": false, "wave_ci_prod_y": true, "other": true} {
		if got := newCredentialChange(schema, "sn", "access_token", "wave_sn_prod_x", to); got.identity != want {
			t.Errorf("to %s: moves the account %v, want %v", to, got.identity, want)
		}
	}
	if newCredentialChange(schema, "sn", "access_token", "", "wave_sn_prod_x").identity {
		t.Error("a new key moves an account")
	}
}
