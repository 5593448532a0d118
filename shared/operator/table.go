package operator

import (
	"slices"
	"time"
)

// allCountries are the countries of the specification's table, by alpha-2 code.
var allCountries = []string{"CI", "CD", "CM", "SN", "TN", "BF"}

// allChannels are the payment channels of the specification.
var allChannels = []string{"web", "tpe", "ussd"}

// terminalChannels are the payment channels on which the payer approves on the phone.
var terminalChannels = []string{"tpe", "ussd"}

// carrierAPIResendWindow is how long a platform with the specification's own protocol keeps a key: a second send within
// it has no second effect (specification, Charge rule 2; decision "repeat-window").
const carrierAPIResendWindow = 24 * time.Hour

// capabilityTable lists the platforms. A new one is a row, and a folder if it needs its own driver. sandbox, orange and
// mtn have the specification's own protocol; the sandbox replaces the others in the local run (decision "sandbox").
// docs/operators has the facts behind the other rows.
var capabilityTable = []Capabilities{
	specificationPlatform("sandbox", "Sandbox"),
	specificationPlatform("orange", "Orange Money"),
	specificationPlatform("mtn", "MTN MoMo"),
	{
		Platform: "mtn-momo", DriverName: "mtn", Reach: []Reach{{"mtn", []string{"CI", "CM"}}},
		Operations: []string{AccountPay}, Channels: terminalChannels, HasStatusLookup: true, KeyForm: KeyUUID,
		NeverSentAfter: 15 * time.Minute, OTPRule: OTPUnused, SendsUserSMS: true,
		// Provisional: MTN's pages for developers have them, and nothing confirms them.
		LookupsPerSecond: 10, CallbackPatience: 2 * time.Second,
	},
	{
		Platform: "orange-webpay", DriverName: "orangewebpay",
		Reach:      []Reach{{"orange", []string{"CI", "BF", "CM", "SN"}}},
		Operations: []string{AccountPay}, Channels: []string{"web"}, HasStatusLookup: true,
		LookupNeedsDriverData: true, OTPRule: OTPUnused, PageTakesCode: true, SendsUserSMS: true, MaxCallbackURL: 120,
	},
	{
		Platform: "wave-checkout", DriverName: "wave", Reach: []Reach{{"wave", []string{"SN", "CI", "BF"}}},
		Operations: []string{AccountPay}, Channels: []string{"web"}, HasStatusLookup: true,
		ResendWindow: 24 * time.Hour, OTPRule: OTPUnused, SendsUserSMS: true, StaticCallbacks: true,
		NeverSentAfter:   45 * time.Minute, // a page ends after 30 minutes
		CallbackPatience: 5 * time.Second,  // provisional: nothing confirms it
	},
	{
		Platform: "orange-cm", DriverName: "orangecm", Reach: []Reach{{"orange", []string{"CM"}}},
		Operations: []string{AccountPay}, Channels: terminalChannels, HasStatusLookup: true, KeyForm: KeyShort,
		Prepares: true, LookupNeedsDriverData: true, OTPRule: OTPUnused, SendsUserSMS: true,
	},
	{
		Platform: "orange-sms", DriverName: "orangesms", Reach: []Reach{{"orange", allCountries}},
		Operations: []string{AccountSMS}, SendsUserSMS: true, StaticCallbacks: true, SMSPerSecond: 5,
	},
	{
		Platform: "pawapay", DriverName: "pawapay",
		Reach: []Reach{
			{"mtn", []string{"CI", "CM"}}, {"orange", []string{"CI", "CD", "CM", "SN", "BF"}},
			{"moov", []string{"BF"}}, {"airtel", []string{"CD"}}, {"vodacom", []string{"CD"}},
			{"free", []string{"SN"}},
		},
		Operations: []string{AccountPay}, Channels: terminalChannels, HasStatusLookup: true, KeyForm: KeyUUID,
		SendsUserSMS: true,
		ShortCodes: []string{
			"mtn CI *133#", "orange CI #120#", "orange SN #144#", "free SN #150#", "moov BF *555*6#",
		},
		CodesFirst:      []string{"orange BF *144*4*6*{amount}#"}, // published in 2018
		StaticCallbacks: true,
	},
	{
		Platform: "flouci-checkout", DriverName: "flouci", Reach: []Reach{{"flouci", []string{"TN"}}},
		Operations: []string{AccountPay}, Channels: []string{"web"}, HasStatusLookup: true, LookupNeedsDriverData: true,
		OTPRule: OTPUnused, SendsUserSMS: true,
	},
}

// specificationPlatform is the row of a platform with the specification's own protocol. brand begins the payer's SMS.
func specificationPlatform(name, brand string) Capabilities {
	return Capabilities{
		Platform: name, DriverName: "gateway", Reach: []Reach{{name, allCountries}}, Channels: allChannels,
		Operations:   []string{AccountCharge, AccountPay, AccountSMS},
		ResendWindow: carrierAPIResendWindow, HasStatusLookup: true, ExpiresPending: true, OTPRule: OTPOptional,
		UserSMSTemplates: UserSMSTemplates{
			FR: brand + " : votre paiement de {amount} {currency} à {merchant} est confirmé. Réf. {order_id}",
			EN: brand + ": your payment of {amount} {currency} to {merchant} is confirmed. Ref. {order_id}",
		},
	}
}

// Channels lists the payment channels of the specification: web, tpe and ussd.
func Channels() []string { return slices.Clone(allChannels) }

// Platforms lists the platforms in the table's order.
func Platforms() []string {
	var names []string
	for _, row := range capabilityTable {
		names = append(names, row.Platform)
	}
	return names
}

// Names lists the operators in the table's order, as the valid values of mno-name.
func Names() []string {
	var names []string
	for _, row := range capabilityTable {
		for _, r := range row.Reach {
			if !slices.Contains(names, r.Operator) {
				names = append(names, r.Operator)
			}
		}
	}
	return names
}

// NamesWithPlatform lists the operators that have a platform of their own name: those that need no route.
func NamesWithPlatform() []string {
	return slices.DeleteFunc(Names(), func(name string) bool {
		_, found := FindCapabilities(name)
		return !found
	})
}
