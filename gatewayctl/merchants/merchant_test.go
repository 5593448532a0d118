package merchants_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/merchant"
)

// A dry run shows a placeholder for the id that the real run would create.
func TestADryRunShowsNoID(t *testing.T) {
	d := gatewayctltest.New(t)
	d.Apply("keys add webhooks")
	output := gatewayctltest.Query[merchants.Onboarding](d, "merchant add ShopA --country ci --operator sandbox")
	d.Equal("id", output.ID, "(shown with --yes)")
	d.Equal("client id", output.ClientID, "(shown with --yes)")
	_, out, stderr := d.Exec("merchant add ShopA --country ci --operator sandbox")
	for line := range strings.Lines(out + stderr) {
		if strings.Contains(line, "id ") && !strings.Contains(line, "(shown with --yes)") {
			t.Errorf("a dry run shows an id: %q", line)
		}
	}
	output = gatewayctltest.Change[merchants.Onboarding](d, "merchant add ShopA --country ci --operator sandbox")
	profile, err := d.Merchants.Profile(t.Context(), output.ID)
	if err != nil || profile == nil || output.ClientID != output.ID {
		t.Errorf("the real run shows id %q and client id %q: profile %v, %v", output.ID, output.ClientID, profile, err)
	}
}

func TestOnboarding(t *testing.T) {
	d := gatewayctltest.New(t)
	d.ExpectFailed("merchant add ShopA --country ci --operator sandbox", "keys add webhooks")
	shop := d.Onboard("ShopA")
	if !merchant.IsWellFormedClientSecret(shop.ClientID, shop.ClientSecret) ||
		!strings.HasPrefix(shop.AccessToken, "gwl_"+shop.ID+"_") ||
		!strings.HasPrefix(shop.WebhookSecret, "whsec_") {
		t.Errorf("a secret is malformed: %q, %q, %q", shop.ClientSecret, shop.AccessToken, shop.WebhookSecret)
	}
	d.Equal("operations", output.JoinComma(shop.Operations), "charge, pay, sms")
	d.Equal("notification hosts", output.JoinComma(shop.NotificationHosts), "shop.example")
	d.Equal("home country", shop.HomeCountry, "CI")
	for _, r := range d.Audit.Records {
		if strings.Contains(r.Detail, "gwl_") ||
			r.Who != "local:ama@host" || r.Why != "test" || r.Credential != "KEYID" {
			t.Errorf("audit record of %s: who %q, why %q, credential %q, detail %q", r.What, r.Who, r.Why,
				r.Credential, r.Detail)
		}
	}
	d.ExpectExit("merchant add SHOPA --country ci --operator sandbox", gatewayctl.ExitFailed, "taken")
	for flags, want := range map[string]string{
		"Shop-A --country ci --operator sandbox":                              "letters and digits",
		"ShopC --country ci --operator bogus":                                 `"bogus"`,
		"ShopC --country fr --operator sandbox":                               `"FR"`,
		"ShopC --country ci --operator sandbox --notif-url http://127.0.0.1/": "notif",
		"ShopC --operator sandbox":                                            "--country",
	} {
		d.ExpectExit("merchant add "+flags, gatewayctl.ExitUsage, want)
	}
	d.ExpectExit("merchant show ShopX", gatewayctl.ExitFailed, "no merchant")
	d.ExpectExit("merchant suspend ShopA --yes", gatewayctl.ExitUsage, "--reason")
	d.ExpectExit("merchant suspend ShopA --yes --reason "+strings.Repeat("x", 501), gatewayctl.ExitUsage, "500 bytes")
}

func TestChangeSuspendResume(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	line := "merchant change ShopA --country sn,ci --host b.example --notif-url https://b.example/n" +
		gatewayctltest.Confirm
	d.ExpectJSON("differences", line, []merchants.FieldChange{
		{Field: "countries", Before: "CI", After: "SN, CI"}, {Field: "home country", Before: "CI", After: "SN"},
		{Field: "notification hosts", Before: "shop.example", After: "b.example"},
		{Field: "notif_url", Before: "https://shop.example/n", After: "https://b.example/n"},
	})
	view := gatewayctltest.Query[merchants.View](d, "merchant show "+shop.ID)
	d.Equal("countries", output.JoinComma(view.Countries), "SN, CI")
	d.ExpectFailed("merchant change ShopA --country sn,ci", "nothing would change")
	d.ExpectFailed("merchant resume ShopA", "nothing would change")
	d.Apply("merchant suspend ShopA")
	d.ExpectBoth("merchant suspend ShopA", gatewayctl.ExitFailed, "nothing would change")
	view = gatewayctltest.Query[merchants.View](d, "merchant show ShopA")
	d.Equal("status of a suspended merchant", view.Status, merchant.StatusSuspended)
	d.Equal("token generation", view.Generation, 2)
	d.Apply("merchant resume ShopA")
	all := gatewayctltest.Query[[]merchants.View](d, "merchant list")
	d.Equal("merchants", len(all), 1)
	d.Equal("status of a resumed merchant", all[0].Status, merchant.StatusActive)
}

// A replay waits until no function has the profile of before in its cache. It knows that by UpdatedAt, so each command
// that changes a profile sets it.
func TestProfileCommandsSetUpdated(t *testing.T) {
	for _, line := range []string{
		"merchant change ShopA --notif-url https://shop.example/other",
		"merchant suspend ShopA", "merchant resume ShopA",
		"host add ShopA b.example", "host remove ShopA b.example",
		"token issue ShopA", "token revoke ShopA 2", "token rotate ShopA --force",
		"client-secret issue ShopA", "client-secret revoke ShopA 2", "client-secret rotate ShopA --force",
		"webhook-secret rotate ShopA", "webhook-secret revoke ShopA 1", "keys revoke webhooks 1 --compromised",
	} {
		t.Run(line, func(t *testing.T) {
			d, shop := gatewayctltest.NewShop(t)
			d.Now = d.Now.Add(time.Hour)
			d.Apply(map[string][]string{
				"merchant resume ShopA":         {"merchant suspend ShopA"},
				"host remove ShopA b.example":   {"host add ShopA b.example"},
				"token revoke ShopA 2":          {"token issue ShopA"},
				"client-secret revoke ShopA 2":  {"client-secret issue ShopA"},
				"webhook-secret revoke ShopA 1": {"webhook-secret rotate ShopA"},
			}[line]...)
			d.Now = d.Now.Add(time.Hour)
			d.Apply(line)
			profile, err := d.Merchants.Profile(t.Context(), shop.ID)
			if err != nil {
				t.Fatal(err)
			}
			d.Equal("updated", profile.UpdatedAt, d.Now)
		})
	}
}

func TestHosts(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	d.ExpectExit("host add ShopA 10.0.0.1"+gatewayctltest.Confirm, gatewayctl.ExitUsage, "10.0.0.1")
	d.ExpectExit("host add ShopA 127.0.0.1:8080"+gatewayctltest.Confirm, gatewayctl.ExitUsage, "127.0.0.1")
	d.ExpectFailed("host add ShopA shop.example", "nothing would change")
	d.ExpectExit("host remove ShopA shop.example"+gatewayctltest.Confirm, gatewayctl.ExitUsage, "notif_url")
	d.Apply("host add ShopA b.example c.example:8443", "host remove ShopA b.example")
	d.ExpectJSON("hosts", "host list ShopA", []string{"shop.example", "c.example:8443"})
}

// The output of merchant add is all that the merchant needs: its credentials, the base address and the constants.
func TestOnboardingHasEverything(t *testing.T) {
	d := gatewayctltest.New(t)
	d.Apply("keys add webhooks")
	const line = "merchant add ShopA --country ci,sn --operator sandbox --requests-per-second 5 --daily-amount XOF=900"
	d.ExpectExit(line, gatewayctl.ExitDone, "needs APPLICATION_ID, BASE_URL, CONTACT_ID, SERVICE_ID: ")
	d.ExpectOutput(line, "not known here: the output BaseUrl of the stack")
	d.Variables["BASE_URL"], d.Variables["SERVICE_ID"] = "https://api.example", "SERVICE-1"
	d.Variables["APPLICATION_ID"], d.Variables["CONTACT_ID"] = "APP-1", "CONTACT-1"
	got := gatewayctltest.Query[merchants.Onboarding](d, line)
	d.Equal("platform", got.Platform, merchants.Platform{BaseURL: "https://api.example",
		ServiceID: "SERVICE-1", ApplicationID: "APP-1", ContactID: "CONTACT-1"})
	d.Equal("flag over variable",
		gatewayctltest.Query[merchants.Onboarding](d, line+" --base-url https://other.example").BaseURL,
		"https://other.example")
	code, out, stderr := d.Exec(line + gatewayctltest.Confirm)
	if code != gatewayctl.ExitDone || stderr != "" {
		t.Errorf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{
		"For ShopA: ", "base address ", "https://api.example", "gwl_", "client id ", "gwc_", "whsec_",
		"an order_id: ShopA_ and digits", "SERVICE-1", "APP-1", "CONTACT-1", "onBehalfOf ", "CI, SN", "sandbox",
		"5, and 5 at once", "900 XOF",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the text lacks %q:\n%s", want, out)
		}
	}
}

// decision "merchant-limits".
func TestLimits(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	if shop.RequestsPerSecond != 20 || shop.Burst != 40 || len(shop.DailyAmounts) != 0 {
		t.Errorf("a new merchant has the limits %d, %d, %v; want the default rate and no amount",
			shop.RequestsPerSecond, shop.Burst, shop.DailyAmounts)
	}
	type rates struct {
		PerSecond, Burst merchants.Limit
		Amounts          map[string]string
	}
	check := func(flags string, want rates) {
		t.Helper()
		d.Apply("merchant change ShopA " + flags)
		view := gatewayctltest.Query[merchants.View](d, "merchant show ShopA")
		d.Equal("limits after "+flags, rates{view.RequestsPerSecond, view.Burst, view.DailyAmounts}, want)
	}
	both := map[string]string{"XOF": "1000000", "USD": "12.50"}
	check("--requests-per-second 5 --burst 20 --daily-amount XOF=1000000 --daily-amount usd=12.5", rates{5, 20, both})
	profile, err := d.Merchants.Profile(t.Context(), shop.ID)
	if err != nil || profile.DailyAmounts["USD"] != 1250 {
		t.Errorf("stored amount: %d, %v", profile.DailyAmounts["USD"], err)
	}
	d.ExpectOutput("merchant show ShopA", "requests per second  5")
	check("--burst 0", rates{5, 5, both})
	check("--country ci,sn", rates{5, 5, both})
	check("--daily-amount XOF=none", rates{5, 5, map[string]string{"USD": "12.50"}})
	check("--requests-per-second 0 --daily-amount USD=none", rates{0, 0, map[string]string{}})
	d.ExpectOutput("merchant show ShopA", "requests per second  no limit")
	for line, why := range map[string]string{
		"--daily-amount EUR=5": "no country", "--daily-amount XOF=1.5": "not an amount",
		"--daily-amount XOF":   "not an amount",
		"--daily-amount XOF=0": "not an amount", "--requests-per-second 1001": "requests per second",
		"--burst 5":                "a burst needs",
		"--requests-per-second=-1": "requests per second",
	} {
		d.ExpectExit("merchant change ShopA "+line+gatewayctltest.Confirm, gatewayctl.ExitUsage, why)
	}
}

// decision "merchant-limits": the onboarding gives a merchant the default rate, unless a flag chooses another.
func TestDefaultRate(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	for flags, want := range map[string][2]merchants.Limit{
		"":                                   {20, 40},
		" --burst 5":                         {20, 5},
		" --requests-per-second 3":           {3, 3},
		" --requests-per-second 3 --burst 9": {3, 9},
		" --requests-per-second 0":           {0, 0},
	} {
		name := fmt.Sprintf("Shop%d%d", want[0], want[1])
		d.Apply("merchant add " + name + " --country ci --operator sandbox" + flags)
		view := gatewayctltest.Query[merchants.View](d, "merchant show "+name)
		d.Equal("rate after merchant add"+flags, [2]merchants.Limit{view.RequestsPerSecond, view.Burst}, want)
	}
}

// newSMSTool returns a tool with two platforms for SMS: the sandbox, and one of Orange in two countries, with a sender
// in one of them.
func newSMSTool(t *testing.T) *gatewayctltest.Tool {
	d := gatewayctltest.New(t)
	d.Apply("keys add webhooks")
	d.Vault.Values["operators"] = []byte(`{
		"sandbox":{"current":"a1","accounts":{"a1":{"base_url":"https://a.example","access_token":"t"}}},
		"orange-sms":{"current":"main","accounts":{"main":{"base_url":"https://b.example",
		"client_id":"i","client_secret":"s","callback_secret":"abcdefghijklmnopqrstuvwxyzABCDEF",
		"sender":{"CI":"tel:+2250000"},"approved_names":"ShopA,ShopB"}}},
		"routes":{"orange":[{"country":"CI","operation":"sms","to":"orange-sms/main"},
		{"country":"SN","operation":"sms","to":"orange-sms/main"}]}}`)
	return d
}

// Onboarding and merchant show state what the operator of each country takes as an SMS's recipient and sender. The
// first operator of the merchant that serves the country gets the SMS, as in the function.
func TestSMSRules(t *testing.T) {
	inCI := func(senderName string) []merchants.SMSRule {
		return []merchants.SMSRule{{Country: "CI", Operator: "orange",
			Recipient: "a number of Ivory Coast (+225 and 10 digits)", Sender: "tel:+2250000", SenderName: senderName}}
	}
	for _, c := range []struct {
		name, flags string
		want        []merchants.SMSRule
	}{
		{"a platform of its own", "--operator orange,sandbox --country ci", inCI("ShopA, ShopB")},
		{"names of the merchant", "--operator orange --country ci --sender-name ShopA,Other", inCI("ShopA")},
		{"an approved name of the merchant", "--operator orange --country ci --sender-name ShopB", inCI("ShopB")},
		{"no sender in the country", "--operator orange --country sn",
			[]merchants.SMSRule{{Country: "SN", Operator: "orange",
				Recipient: "a number of Senegal (+221 and 9 digits)", SenderName: "any",
				Sender: "none works: operator refused us: the operator's account has no usable sender for the country",
			}}},
		{"no approved name of the merchant", "--operator orange --country ci --sender-name Other",
			inCI("none works: invalid in outboundSMSMessageRequest.senderName: " +
				"no name of the merchant is approved for the account")},
		{"the specification's protocol", "--operator sandbox,orange --country ci,tn --sender-name ShopA",
			[]merchants.SMSRule{
				{Country: "CI", Operator: "sandbox", Recipient: "the alias", Sender: "tel:+225 and digits",
					SenderName: "ShopA"},
				{Country: "TN", Operator: "sandbox", Recipient: "the alias", Sender: "tel:+216 and digits",
					SenderName: "ShopA"},
			}},
		{"another country", "--operator orange --country cm", nil},
		{"no SMS", "--operator orange --country ci --operation pay", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newSMSTool(t)
			added := gatewayctltest.Change[merchants.Onboarding](d, "merchant add ShopA "+c.flags)
			d.Equal("of merchant add", added.SMS, c.want)
			d.Equal("of merchant show", gatewayctltest.Query[merchants.View](d, "merchant show ShopA").SMS, c.want)
			for _, rule := range c.want {
				d.ExpectOutput("merchant show ShopA", "SMS in "+rule.Country, "by "+rule.Operator+": X-Operator-ISE2 "+
					rule.Recipient+"; senderAddress "+rule.Sender+"; senderName "+rule.SenderName)
			}
		})
	}
	t.Run("one statement about senderName", func(t *testing.T) { // the merchant's text and a country never disagree
		d := newSMSTool(t)
		for flags, count := range map[string]int{
			"--operator orange --country ci": 1, "--operator orange --country cm": 1,
			"--operator orange --country ci,sn": 2,
		} {
			_, out, _ := d.Exec("merchant add ShopA " + flags)
			if strings.Count(out, "senderName") != count {
				t.Errorf("%s: %s", flags, out)
			}
		}
	})
	t.Run("entitlements that nothing serves", func(t *testing.T) {
		d := newSMSTool(t)
		const useless, unreached = "Operator orange serves nothing in ", "No operator of ShopA serves anything in TN"
		for line, want := range map[string]string{
			"add ShopA --operator sandbox,orange --country ci":                 "",
			"add ShopA --operator sandbox,orange --country tn":                 useless + "TN",
			"add ShopA --operator sandbox,orange --country ci --operation pay": useless + "CI",
			"add ShopA --operator orange --country tn,cm":                      useless + "TN, CM",
			"add ShopA --operator orange --country ci,tn --operation sms":      unreached,
		} {
			_, _, stderr := d.Exec("merchant " + line)
			for _, warning := range []string{"serves nothing in", "No operator of"} {
				isWarned := strings.Contains(stderr, warning)
				if isWarned != strings.Contains(want, warning) || !strings.Contains(stderr, want) {
					t.Errorf("%s: %q, want %q", line, stderr, want)
				}
			}
		}
		d.Apply("merchant add ShopA --operator orange --country ci --operation sms")
		d.ExpectExit("merchant change ShopA --country tn", gatewayctl.ExitDone, useless+"TN")
	})
	t.Run("without the credentials", func(t *testing.T) {
		d, _ := gatewayctltest.NewShop(t)
		delete(d.Variables, "OPERATOR_CREDENTIALS_SECRET")
		d.ExpectExit("merchant show ShopA", gatewayctl.ExitDone, "not known here: ")
		d.ExpectWithout("merchant show ShopA", gatewayctl.ExitDone, "SMS in")
	})
}
