package gatewayctl

import (
	"strings"
	"testing"
)

// Onboarding and merchant show state what the operator of each country takes as an SMS's recipient and sender. The
// first operator of the merchant that serves the country gets the SMS, as in the function.
func TestSMSRules(t *testing.T) {
	const number = "a number of Ivory Coast (+225 and 10 digits)"
	account := `{"sandbox":{"current":"a1","accounts":{"a1":{"base_url":"https://a.example","access_token":"t"}}},
		"orange-sms":{"current":"main","accounts":{"main":{"base_url":"https://b.example",
		"client_id":"i","client_secret":"s","callback_secret":"abcdefghijklmnopqrstuvwxyzABCDEF",
		"sender":{"CI":"tel:+2250000"},"approved_names":"ShopA,ShopB"}}},
		"routes":{"orange":[{"country":"CI","operation":"sms","to":"orange-sms/main"},
		{"country":"SN","operation":"sms","to":"orange-sms/main"}]}}`
	for _, c := range []struct {
		name, flags string
		want        []smsRule
	}{
		{"a platform of its own", "--operator orange,sandbox --country ci",
			[]smsRule{{"CI", "orange", number, "tel:+2250000", "ShopA, ShopB"}}},
		{"names of the merchant", "--operator orange --country ci --sender-name ShopA,Other",
			[]smsRule{{"CI", "orange", number, "tel:+2250000", "ShopA"}}},
		{"an approved name of the merchant", "--operator orange --country ci --sender-name ShopB",
			[]smsRule{{"CI", "orange", number, "tel:+2250000", "ShopB"}}},
		{"no sender in the country", "--operator orange --country sn",
			[]smsRule{{"SN", "orange", "a number of Senegal (+221 and 9 digits)",
				"none works: operator refused us: the operator's account has no usable sender for the country",
				"any"}}},
		{"no approved name of the merchant", "--operator orange --country ci --sender-name Other",
			[]smsRule{{"CI", "orange", number, "tel:+2250000", "none works: invalid in outboundSMSMessageRequest." +
				"senderName: no name of the merchant is approved for the account"}}},
		{"the specification's protocol", "--operator sandbox,orange --country ci,tn --sender-name ShopA", []smsRule{
			{"CI", "sandbox", "the alias", "tel:+225 and digits", "ShopA"},
			{"TN", "sandbox", "the alias", "tel:+216 and digits", "ShopA"},
		}},
		{"another country", "--operator orange --country cm", nil},
		{"no SMS", "--operator orange --country ci --operation pay", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newTestTool(t)
			d.apply("keys add webhooks")
			d.vault.values[d.variables["OPERATOR_CREDENTIALS_SECRET"]] = []byte(account)
			added := query[onboardingResult](d, "merchant add ShopA "+c.flags+confirmFlags)
			checkEqual(t, "of merchant add", added.SMS, c.want)
			checkEqual(t, "of merchant show", query[merchantView](d, "merchant show ShopA").SMS, c.want)
			for _, rule := range c.want {
				d.expectOutput("merchant show ShopA", "SMS in "+rule.Country, "by "+rule.Operator+": X-Operator-ISE2 "+
					rule.Recipient+"; senderAddress "+rule.Sender+"; senderName "+rule.SenderName)
			}
		})
	}
	t.Run("without the credentials", func(t *testing.T) {
		d := newTestTool(t)
		d.apply("keys add webhooks", "merchant add ShopA --operator sandbox --country ci")
		delete(d.variables, "OPERATOR_CREDENTIALS_SECRET")
		code, out, stderr := d.run("merchant show ShopA")
		if code != ExitDone || strings.Contains(out, "SMS in") || !strings.Contains(stderr, "not known here: ") {
			t.Errorf("exit %d: %s%s", code, out, stderr)
		}
	})
}
