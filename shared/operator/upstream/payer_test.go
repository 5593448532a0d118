package upstream_test

import (
	"testing"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/market"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
)

func TestPayer(t *testing.T) {
	cases := []struct{ country, msisdn, amount, digits, text string }{
		{"CI", "+2250707070707", "1500", "2250707070707", "1500"},
		{"CI", "002250707070707", "1500.00", "2250707070707", "1500"},
		{"ci", "0707070707", "0015", "2250707070707", "15"},
		{"CM", "237670000000", "5", "237670000000", "5"},
		{"CM", "670000000", "5", "237670000000", "5"},
		{"CD", "0820000000", "1.5", "243820000000", "1.50"},
		{"CI", "+46733123450", "5", "", ""},
		{"CI", "", "5", "", ""},
		{"CI", "0707070707", "1.5", "", ""},
		{"CI", "0707070707", "", "", ""},
		{"XX", "0707070707", "1", "", ""},
	}
	for _, c := range cases {
		call := operator.PayCall{Call: operator.Call{Country: c.country}, MSISDN: c.msisdn, Amount: c.amount}
		if country, known := market.ByAlpha2(c.country); known {
			call.Currency = country.Currency
		}
		digits, amount, invalid := upstream.Payer(call)
		if digits != c.digits || amount != c.text || (invalid == nil) != (c.digits != "") {
			t.Errorf("%s %q %q: %q, %q, %v", c.country, c.msisdn, c.amount, digits, amount, invalid)
		}
		if invalid != nil && invalid.Kind != fault.InvalidPart {
			t.Errorf("%s %q %q: kind %d", c.country, c.msisdn, c.amount, invalid.Kind)
		}
	}
}
