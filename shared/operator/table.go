package operator

import (
	"slices"
	"strings"
	"time"
)

// allCountries are the countries of the specification's table, by alpha-2 code.
var allCountries = []string{"CI", "CD", "CM", "SN", "TN", "BF"}

// allChannels are the payment channels of the specification.
var allChannels = []string{"web", "tpe", "ussd"}

// gatewayResendWindow is how long a platform with the specification's own protocol keeps a key: a second send within it
// has no second effect (specification, Charge rule 2; decision "repeat-window").
const gatewayResendWindow = 24 * time.Hour

// capabilityTable lists the operators. A new operator is a row, and a folder if it needs its own driver. orange and mtn
// have the same protocol as the sandbox, which replaces both in the local run (decision "sandbox").
var capabilityTable = []Capabilities{
	specificationOperator("sandbox", "Sandbox"),
	specificationOperator("orange", "Orange Money"),
	specificationOperator("mtn", "MTN MoMo"),
}

// specificationOperator is the row of a platform with the specification's own protocol. brand begins the payer's SMS.
func specificationOperator(name, brand string) Capabilities {
	return Capabilities{
		Operator: name, DriverName: "gateway", Countries: allCountries, Channels: allChannels,
		ResendWindow: gatewayResendWindow, HasStatusLookup: true, OTPRule: OTPOptional,
		UserSMSTemplates: UserSMSTemplates{
			FR: brand + " : votre paiement de {amount} {currency} à {merchant} est confirmé. Réf. {order_id}",
			EN: brand + ": your payment of {amount} {currency} to {merchant} is confirmed. Ref. {order_id}",
		},
	}
}

// FindCapabilities returns an operator's row by its name, compared without case.
func FindCapabilities(name string) (Capabilities, bool) {
	for _, row := range capabilityTable {
		if strings.EqualFold(row.Operator, name) {
			return row, true
		}
	}
	return Capabilities{}, false
}

// Names lists the operators in the table's order, as the valid values of mno-name.
func Names() []string {
	var names []string
	for _, row := range capabilityTable {
		names = append(names, row.Operator)
	}
	return names
}

// FirstServing selects the operator of a charge or an SMS, which have no mno-name. It returns the first of a merchant's
// operators, in its order of preference, that is in the table and serves the country (alpha-2). It returns false if
// there is none.
func FirstServing(names []string, country string) (Capabilities, bool) {
	for _, name := range names {
		if row, ok := FindCapabilities(name); ok && row.ServesCountry(country) {
			return row, true
		}
	}
	return Capabilities{}, false
}

// resendMargin is how long before the end of the operator's resend window the last retry is sent: the request itself
// takes time, and clocks differ (decision "repeat-window").
const resendMargin = 10 * time.Minute

// SafeResendWindow is how long after its first send a transaction may be sent again: ResendWindow without the margin.
func (c Capabilities) SafeResendWindow() time.Duration { return max(0, c.ResendWindow-resendMargin) }

// ServesCountry reports whether the operator works in a country, by alpha-2 code without regard to case.
func (c Capabilities) ServesCountry(country string) bool {
	return slices.ContainsFunc(c.Countries, func(code string) bool { return strings.EqualFold(code, country) })
}

// SupportsChannel reports whether the operator has a payment channel: web, tpe or ussd.
func (c Capabilities) SupportsChannel(channel string) bool {
	return slices.Contains(c.Channels, channel)
}
