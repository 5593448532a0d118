package operator_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/operator"
)

// routed are routes of every kind. Only the operators in platforms have credentials of their own platform.
func routed(platforms ...string) operator.Routes {
	return operator.Routes{Platforms: platforms, ByOperator: map[string][]operator.Route{
		"mtn": {
			{Country: "CI", Operation: "pay", To: "mtn-momo/ci"},
			{Country: "CI", Operation: "pay", Channel: "ussd", To: "pawapay/p"}, // the first route that fits counts
			{Country: "CM", Operation: "pay", Channel: "ussd", To: "pawapay/p"},
		},
		"orange": {
			{Country: "CM", Operation: "pay", Channel: "web", To: "orange-webpay/w"},
			{Country: "CM", Operation: "pay", To: "orange-cm/c"},
			{Country: "SN", Operation: "sms", To: "orange-sms/s"},
			{Country: "CI", Operation: "sms", Channel: "web", To: "orange-sms/s"}, // a message has no channel
		},
		"wave": {
			{Country: "SN", Operation: "pay", Channel: "tpe", To: "wave-checkout/w"}, // it has only web
			{Country: "CM", Operation: "pay", To: "wave-checkout/w"},                 // it does not reach CM
			{Country: "CI", Operation: "pay", To: "no-such/w"},
			{Country: "CI", Operation: "pay", To: "wave-checkout"},
			{Country: "CI", Operation: "pay", To: "wave-checkout/"}, // no account would be pinned
			{Country: "BF", Operation: "charge", To: "wave-checkout/w"},
		},
		"moov": {{Country: "BF", Operation: "pay", To: "mtn-momo/ci"}},
	}}
}

func TestSelect(t *testing.T) {
	for _, c := range []struct {
		name, operator, country, operation, channel string
		platforms                                   []string
		platform, account                           string // "" for none
	}{
		{"any channel", "mtn", "CI", "pay", "tpe", nil, "mtn-momo", "mtn-momo/ci"},
		{"the first route that fits", "mtn", "CI", "pay", "ussd", nil, "mtn-momo", "mtn-momo/ci"},
		{"in upper case", "MTN", "CI", "pay", "tpe", nil, "mtn-momo", "mtn-momo/ci"},
		{"a channel that the platform lacks", "mtn", "CI", "pay", "web", nil, "", ""},
		{"the same, with credentials of its own", "mtn", "CI", "pay", "web", []string{"mtn"}, "mtn", ""},
		{"a route for one channel", "mtn", "CM", "pay", "ussd", nil, "pawapay", "pawapay/p"},
		{"another channel than the route's", "mtn", "CM", "pay", "tpe", nil, "", ""},
		{"the same, with credentials of its own", "mtn", "CM", "pay", "tpe", []string{"orange", "mtn"}, "mtn", ""},
		{"an operation without a route", "mtn", "CI", "sms", "", nil, "", ""},
		{"the same, with credentials of its own", "mtn", "CI", "sms", "", []string{"mtn"}, "mtn", ""},
		{"web by its own route", "orange", "CM", "pay", "web", nil, "orange-webpay", "orange-webpay/w"},
		{"a terminal by the route without a channel", "orange", "CM", "pay", "tpe", nil, "orange-cm", "orange-cm/c"},
		{"a message", "orange", "SN", "sms", "", nil, "orange-sms", "orange-sms/s"},
		{"a message by a route with a channel", "orange", "CI", "sms", "", nil, "", ""},
		{"no channel of a payment", "mtn", "CI", "pay", "", nil, "", ""},
		{"the route's channel is not the platform's", "wave", "SN", "pay", "tpe", nil, "", ""},
		{"the platform does not reach the country", "wave", "CM", "pay", "web", nil, "", ""},
		{"an unknown platform, or no account", "wave", "CI", "pay", "web", []string{"wave"}, "", ""},
		{"an operation that the platform lacks", "wave", "BF", "charge", "", nil, "", ""},
		{"an operator that the platform does not reach", "moov", "BF", "pay", "ussd", nil, "", ""},
		{"no route, and a platform of its own", "sandbox", "TN", "charge", "", nil, "sandbox", ""},
		{"no route, and none of its own", "airtel", "CD", "pay", "ussd", []string{"pawapay"}, "", ""},
		{"an unknown operator", "zz", "CI", "pay", "web", []string{"zz"}, "", ""},
	} {
		service := operator.Service{
			Operator: c.operator, Country: c.country, Operation: c.operation, Channel: c.channel,
		}
		got, found := routed(c.platforms...).Select(service)
		if found != (c.platform != "") || got.Platform != c.platform || got.Account != c.account {
			t.Errorf("%s: %q, account %q, found %v; want %q, %q",
				c.name, got.Platform, got.Account, found, c.platform, c.account)
		}
		if found && got.Operator != strings.ToLower(c.operator) {
			t.Errorf("%s: operator %q, want it in lower case", c.name, got.Operator)
		}
	}
}

// Without routes each operator has the platform of its own name, whether or not it has credentials yet.
func TestSelectWithoutRoutes(t *testing.T) {
	service := operator.Service{Operator: "orange", Country: "BF", Operation: "pay", Channel: "web"}
	got, found := operator.Routes{}.Select(service)
	if !found || got.Platform != "orange" || got.Account != "" {
		t.Errorf("%q, account %q, found %v; want orange, unrouted", got.Platform, got.Account, found)
	}
}

func TestChannelsAndOperators(t *testing.T) {
	for _, c := range []struct {
		operator, country, operation string
		platforms, want              []string
	}{
		{"mtn", "CI", "pay", nil, []string{"tpe", "ussd"}},
		{"mtn", "CI", "pay", []string{"mtn"}, []string{"web", "tpe", "ussd"}},
		{"mtn", "CM", "pay", nil, []string{"ussd"}},
		{"orange", "CM", "pay", nil, []string{"web", "tpe", "ussd"}},
		{"orange", "SN", "sms", nil, []string{""}},
		{"orange", "BF", "sms", nil, []string{}},
		{"wave", "SN", "pay", nil, []string{}},
		{"sandbox", "TN", "charge", nil, []string{""}},
	} {
		got := routed(c.platforms...).Channels(c.operator, c.country, c.operation)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("channels of %s %s %s (-want +got):\n%s", c.operator, c.operation, c.country, diff)
		}
	}
	names := []string{"sandbox", "orange", "mtn", "wave"}
	for _, c := range []struct {
		country, operation string
		platforms, want    []string
	}{
		{"CI", "pay", nil, []string{"sandbox", "mtn"}},
		{"CI", "pay", []string{"orange"}, []string{"sandbox", "orange", "mtn"}},
		{"TN", "pay", nil, []string{"sandbox"}},
		{"", "pay", nil, []string{"sandbox", "orange", "mtn"}},
		{"", "charge", nil, []string{"sandbox"}},
		{"ZZ", "pay", nil, []string{}},
	} {
		got := routed(c.platforms...).Operators(names, c.country, c.operation)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("operators for %s in %q (-want +got):\n%s", c.operation, c.country, diff)
		}
	}
	if !slices.Equal(names, []string{"sandbox", "orange", "mtn", "wave"}) {
		t.Error("Operators changed its argument")
	}
}

func TestWhyNotOffered(t *testing.T) {
	for _, c := range []struct{ platform, operator, country, operation, channel, want string }{
		{"mtn-momo", "mtn", "CI", "pay", "ussd", ""},
		{"mtn-momo", "MTN", "ci", "pay", "", ""},
		{"mtn-momo", "mtn", "CI", "sms", "", "mtn-momo has no sms; it has pay"},
		{"mtn-momo", "mtn", "CD", "pay", "ussd", "mtn-momo does not reach mtn in CD; it reaches mtn in CI, CM"},
		{"mtn-momo", "mtn", "CI", "pay", "web", "mtn-momo has no channel web; it has tpe, ussd"},
		{"wave-checkout", "orange", "SN", "pay", "web",
			"wave-checkout does not reach orange in SN; it reaches wave in SN, CI, BF"},
		{"orange-sms", "orange", "CI", "sms", "", ""},
		{"sandbox", "sandbox", "CI", "refund", "", "sandbox has no refund; it has charge, pay, sms"},
	} {
		row, _ := operator.FindCapabilities(c.platform)
		service := operator.Service{
			Operator: c.operator, Country: c.country, Operation: c.operation, Channel: c.channel,
		}
		if got := row.WhyNotOffered(service); got != c.want || row.Offers(service) != (c.want == "") {
			t.Errorf("%s, %+v: %q, want %q", c.platform, service, got, c.want)
		}
	}
}
