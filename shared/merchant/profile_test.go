package merchant_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mobilegateway/proof/kits/merchanttest"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/outgoing"
)

func TestAllows(t *testing.T) {
	p := merchanttest.NewProfile(t, "DemoShop", 1)
	p.Operations = []string{merchant.OperationPay, merchant.OperationSMS}
	cases := []struct {
		name                         string
		operation, country, operator string
		want                         bool
	}{
		{"all entitlements", "pay", "CI", "sandbox", true},
		{"the second country", "pay", "SN", "sandbox", true},
		{"country without case", "pay", "ci", "sandbox", true},
		{"operator without case", "pay", "CI", "Sandbox", true},
		{"no operator", "sms", "CI", "", true},
		{"only the operation", "sms", "", "", true},
		{"another operation", "charge", "CI", "sandbox", false},
		{"another country", "pay", "TN", "sandbox", false},
		{"another operator", "pay", "CI", "orange", false},
		{"no operation", "", "CI", "sandbox", false},
		{"operation with case", "Pay", "CI", "sandbox", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := p.Allows(c.operation, c.country, c.operator); got != c.want {
				t.Errorf("Allows = %v, want %v", got, c.want)
			}
		})
	}
}

func TestListsOfAProfile(t *testing.T) {
	p := &merchant.Profile{}
	if p.DefaultCountry() != "" {
		t.Error("an empty profile must have no country")
	}
	if p.Countries = []string{"SN", "CI"}; p.DefaultCountry() != "SN" {
		t.Error("the first country must be the default")
	}
	if p.HomeCountry = "CI"; p.DefaultCountry() != "CI" {
		t.Error("HomeCountry must be the default country")
	}
}

func TestNotificationPolicy(t *testing.T) {
	p := &merchant.Profile{}
	if outgoing.CheckNotificationURL("https://shop.example/", p.NotificationPolicy(false)) == nil {
		t.Error("a URL is allowed without registered hosts")
	}
	p.NotificationHosts = []string{"shop.example"}
	if err := outgoing.CheckNotificationURL("https://shop.example/notify", p.NotificationPolicy(false)); err != nil {
		t.Error(err)
	}
	if outgoing.CheckNotificationURL("http://127.0.0.1:3002/", p.NotificationPolicy(false)) == nil {
		t.Error("a loopback URL is allowed in a deployment")
	}
	if err := outgoing.CheckNotificationURL("http://127.0.0.1:3002/", p.NotificationPolicy(true)); err != nil {
		t.Error(err)
	}
}

func TestValidateReportsEveryError(t *testing.T) {
	good := merchanttest.NewProfile(t, "DemoShop", 1)
	good.HomeCountry, good.SenderNames = "SN", []string{"DemoShop"}
	good.NotificationHosts = []string{"shop.example", "a.example:8443"}
	good.NotifURL = "https://a.example:8443/notify"
	if err := good.Validate(false); err != nil {
		t.Errorf("a good profile: %v", err)
	}
	local := good.Clone()
	local.NotifURL = "http://127.0.0.1:3002/inbox"
	if err := local.Validate(true); err != nil {
		t.Errorf("a local profile: %v", err)
	}

	bad := &merchant.Profile{
		Name: "Demo Shop", ID: "x",
		Entitlements: merchant.Entitlements{
			Operations: []string{"refund"}, Countries: []string{"ci", "FR"}, HomeCountry: "SN",
			Operators: []string{"Orange", ""}, SenderNames: []string{"TwelveLetter", ""},
		},
		Notifications: merchant.Notifications{
			NotificationHosts: []string{"10.0.0.1", "a.example/path"}, NotifURL: "http://a.example/",
		},
	}
	err := bad.Validate(false)
	if err == nil {
		t.Fatal("an invalid profile gave no error")
	}
	for _, word := range []string{
		"merchant name", "the id", `"refund"`, `"ci"`, `"FR"`, `"SN"`, `"Orange"`, `""`, `"TwelveLetter"`, `"10.0.0.1"`,
		`"a.example/path"`, "notif_url",
	} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not name %s:\n%v", word, err)
		}
	}
}

func TestCodecKeepsUnknownFields(t *testing.T) {
	p := merchanttest.NewProfile(t, "DemoShop", 1)
	document, err := merchant.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.TrimSuffix(string(document), "}") + `,"limits":{"daily":12345678901234567890},"zone":"é<"}`
	read, err := merchant.Decode([]byte(newer))
	if err != nil {
		t.Fatal(err)
	}
	again, err := merchant.Encode(read)
	if err != nil || !strings.HasSuffix(string(again), `,"limits":{"daily":12345678901234567890},"zone":"é\u003c"}`) {
		t.Errorf("encoded %s, %v", again, err)
	}
	second, err := merchant.Encode(read.Clone())
	if err != nil || string(second) != string(again) {
		t.Errorf("a clone encodes as %s, %v", second, err)
	}
	for _, text := range []string{"", "[]", "{", `{"version":"1"}`} {
		if _, err := merchant.Decode([]byte(text)); err == nil {
			t.Errorf("Decode(%q) gave no error", text)
		}
	}
}

// TestCodecRoundTrip fills every exported field and requires all of them back, so that a new field cannot be forgotten.
func TestCodecRoundTrip(t *testing.T) {
	p := merchanttest.NewProfile(t, "DemoShop", 1)
	p.HomeCountry, p.SenderNames, p.NotificationHosts, p.NotifURL = "SN", []string{"a"}, []string{"b"}, "c"
	p.ChargeNotif, p.SMSNotifyAnyHost = true, true
	p.RequestsPerSecond, p.Burst, p.DailyAmounts = 5, 10, map[string]int64{"XOF": 1_000_000}
	p.DayShards, p.MostDayShards = 3, 4
	_, _ = merchant.LongLivedToken.Issue(p, merchanttest.SeededReader(1), start)
	_, _ = merchant.ClientSecret.Issue(p, merchanttest.SeededReader(1), start)
	_, _ = merchant.IssueWebhookSecret(p, 1, false, start)
	value := reflect.ValueOf(*p)
	for i := range value.NumField() {
		if field := value.Type().Field(i); field.IsExported() && value.Field(i).IsZero() {
			t.Errorf("the test leaves %s empty", field.Name)
		}
	}
	document, err := merchant.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	read, err := merchant.Decode(document)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, read, cmpopts.IgnoreUnexported(merchant.Profile{})); diff != "" {
		t.Errorf("a profile changed by Encode and Decode (-before +after):\n%s", diff)
	}
	if again, err := merchant.Encode(read); err != nil || string(again) != string(document) {
		t.Errorf("Decode took a known field for an unknown one:\n%s\n%s", document, again)
	}
}

func TestCloneIsIndependent(t *testing.T) {
	p := merchanttest.NewProfile(t, "DemoShop", 1)
	p.DailyAmounts = map[string]int64{"XOF": 1}
	before, c := p.Clone(), p.Clone()
	c.DailyAmounts["XOF"] = 2
	c.Countries[0], c.Operators[0], c.Operations[0] = "TN", "mtn", "x"
	if diff := cmp.Diff(before, p, cmpopts.IgnoreUnexported(merchant.Profile{})); diff != "" {
		t.Errorf("a change of the clone changed the profile (-before +after):\n%s", diff)
	}
}
