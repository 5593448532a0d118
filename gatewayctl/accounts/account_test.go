package accounts

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/operator"
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

// The proposed command works for the platform: only an account with a fixed token has one to rotate.
func TestRenewArguments(t *testing.T) {
	got := map[string]string{}
	for _, platform := range servedPlatforms(func(operator.Capabilities) bool { return true }) {
		got[platform] = RenewArguments(operator.Pin{Platform: platform, Account: "a1"})[1]
	}
	want := map[string]string{
		"sandbox": "rotate-token", "orange": "rotate-token", "mtn": "rotate-token", "wave-checkout": "rotate-token",
		"pawapay": "rotate-token", "mtn-momo": "set", "orange-webpay": "set", "orange-cm": "set", "orange-sms": "set",
		"flouci-checkout": "set",
	}
	if !maps.Equal(got, want) {
		t.Errorf("commands %v, want %v", got, want)
	}
}

// The first route of an operator ends its default, unless its own platform has accounts. The difference shows all
// services that the operator loses.
func TestFirstRouteEndsTheDefault(t *testing.T) {
	account := map[string]json.RawMessage{"a1": nil}
	stored := Stored{
		operators: credentialsByOperator{"mtn-momo": {"ci", account}, "mtn": {"m1", account}},
		routes:    map[string][]operator.Route{"mtn": {{Country: "CI", Operation: "pay", To: "mtn-momo/ci"}}},
	}
	expect := func(channel, want string) {
		t.Helper()
		pin, routed := stored.accountOf(ServiceView{"mtn", "CI", "pay", channel})
		if got := selectionText(pin, routed); got != want {
			t.Errorf("%s: %s, want %s", channel, got, want)
		}
	}
	expect("web", "mtn/m1 (default)")
	expect("tpe", "mtn-momo/ci")
	delete(stored.operators, "mtn")
	expect("web", noRoute)
}

func TestCallbackLength(t *testing.T) {
	row := operator.Capabilities{Platform: "orange-webpay", MaxCallbackURL: 120}
	path := callback.PaymentPath("orange", strings.Repeat("0", 30)) + "/" + strings.Repeat("t", callback.TokenLength)
	longest := "https://" + strings.Repeat("h", 120-len(path)-len("https://"))
	for name, c := range map[string]struct {
		variables             map[string]string
		wantError, wantOutput string
	}{
		"at the limit":       {map[string]string{"BASE_URL": longest + "/"}, "", ""},
		"one above":          {map[string]string{"BASE_URL": longest + "h"}, "121: shorten the base address by 1", ""},
		"own callback base":  {map[string]string{"BASE_URL": longest + "h", "CALLBACK_BASE_URL": longest}, "", ""},
		"long callback base": {map[string]string{"BASE_URL": longest, "CALLBACK_BASE_URL": longest + "hh"}, "by 2", ""},
		"unknown base":       {nil, "", "could not be checked: set CALLBACK_BASE_URL or BASE_URL"},
	} {
		var output strings.Builder
		s := &session.Session{System: deployment.System{Stderr: &output,
			Getenv: func(name string) string { return c.variables[name] }}}
		got := ""
		if err := checkCallbackLength(s, row, "orange"); err != nil {
			got = err.Error()
		}
		if (got == "") != (c.wantError == "") || !strings.Contains(got, c.wantError) {
			t.Errorf("%s: error %q, want %q", name, got, c.wantError)
		}
		if !strings.Contains(output.String(), c.wantOutput) || c.wantOutput == "" && output.Len() > 0 {
			t.Errorf("%s: wrote %q, want %q", name, output.String(), c.wantOutput)
		}
		row.MaxCallbackURL = 0
		if err := checkCallbackLength(s, row, "orange"); err != nil {
			t.Errorf("%s, without a limit: %v", name, err)
		}
		row.MaxCallbackURL = 120
	}
}
