package operator

import (
	"slices"
	"strings"
	"time"
)

// OTPRule is a platform's rule for otp_code on the tpe and ussd channels.
type OTPRule int

// The rules. On the web channel otp_code is unused everywhere.
const (
	OTPOptional OTPRule = iota
	OTPRequired
	OTPUnused
)

// KeyForm is the form of a payment's upstream key. The reservation makes the key and pins it.
type KeyForm int

// The forms.
const (
	KeyOrderID KeyForm = iota // the merchant's order_id
	KeyUUID                   // a random UUID, version 4
	KeyShort                  // at most 20 characters: the order_id, or a hash of a longer one
)

// AmountRange bounds a payment in minor units; 0 for no bound.
type AmountRange struct{ Min, Max int64 }

// Contains reports whether an amount is within the bounds, which belong to the range.
func (r AmountRange) Contains(minor int64) bool {
	return minor >= r.Min && (r.Max == 0 || minor <= r.Max)
}

// Reach is an operator that a platform reaches, and the countries (alpha-2) where it does.
type Reach struct {
	Operator  string
	Countries []string
}

// Service is what a merchant's request needs from an operator.
type Service struct {
	Operator  string // mno-name, lower case
	Country   string // alpha-2
	Operation string // AccountCharge, AccountPay or AccountSMS
	Channel   string // payments: web, tpe or ussd
}

// Capabilities declare what a platform can do. A platform is one system of an operator or an aggregator, with its own
// protocol and credentials. Each has one row.
type Capabilities struct {
	// Platform is the name in the credentials and in routes, lower case.
	Platform string
	// DriverName is the name of its driver in the package drivers.
	DriverName string
	// Reach lists the operators of mno-name that it reaches, and where.
	Reach []Reach
	// Operations are those of AccountCharge, AccountPay and AccountSMS that it offers. Channels are its payment
	// channels.
	Operations []string
	Channels   []string
	// ResendWindow is how long after the first send the platform treats a second send under the same key as the first
	// one; 0 means never. The gateway stops 10 minutes before it ends (decision "repeat-window").
	ResendWindow time.Duration
	// HasStatusLookup is true if the driver implements StatusLookup for it.
	HasStatusLookup bool
	// LookupNeedsDriverData is true if only what the response to the payment brought finds the payment.
	LookupNeedsDriverData bool
	// NeverSentAfter is how long after the last send a lookup that does not find the payment proves that no call
	// reached the platform; 0 if that proves nothing (decision "never-sent").
	NeverSentAfter time.Duration
	// ExpiresPending is true if the gateway ends a payment that is still not final at the end of its lifetime. Other
	// platforms end each payment themselves, so that such a payment is in doubt and needs a person (decision
	// "pay-poll").
	ExpiresPending bool
	// Prepares is true if the driver is a Preparer: without DriverData nothing was ever sent (decision "prepare").
	Prepares bool
	// KeyForm is the form of a payment's upstream key.
	KeyForm KeyForm
	// Amounts bound a payment.
	Amounts AmountRange
	// OTPRule is the rule for otp_code on tpe and ussd.
	OTPRule OTPRule
	// ShortCodes are those that a payer dials to approve a payment: "mtn CI *133#". Without one the payer gets a push.
	ShortCodes []string
	// CodesFirst are dialled by a payer before the payment, to make the one-time code that approves it:
	// "orange BF *144*4*6*{amount}#". There otp_code is needed, and the platform's other payers need none.
	CodesFirst []string
	// PageTakesCode is true if the payer types a one-time code on the platform's page, made on the phone before.
	PageTakesCode bool
	// SendsUserSMS is true if the platform itself sends the payer's SMS after a payment.
	SendsUserSMS bool
	// UserSMSTemplates are the texts of that SMS if the gateway sends it.
	UserSMSTemplates UserSMSTemplates
	// MaxCallbackURL is the longest callback address that it takes, in characters; 0 for no bound. StaticCallbacks is
	// true if it knows one address for each account instead of one for each request.
	MaxCallbackURL  int
	StaticCallbacks bool
	// CallbackPatience is how long the platform waits for the response to a callback; 0 if it waits longer than the
	// function runs (decision "callback-patience").
	CallbackPatience time.Duration
	// SMSPerSecond is how many messages an account may send in a second, and LookupsPerSecond how many status lookups
	// it may make (decision "lookup-rate"); 0 for no bound.
	SMSPerSecond, LookupsPerSecond int
}

// Reaches reports whether the platform reaches an operator in a country (alpha-2), compared without case.
func (c Capabilities) Reaches(operatorName, country string) bool {
	return slices.ContainsFunc(c.Reach, func(r Reach) bool {
		return strings.EqualFold(r.Operator, operatorName) && slices.ContainsFunc(r.Countries, func(code string) bool {
			return strings.EqualFold(code, country)
		})
	})
}

// ShortCode returns what a payer of an operator in a country (alpha-2) dials to approve a payment, "" for a push.
func (c Capabilities) ShortCode(operatorName, country string) string {
	return findDialled(c.ShortCodes, operatorName, country)
}

// findDialled returns the third word of the line whose first two are an operator and a country, "" for none.
func findDialled(lines []string, operatorName, country string) string {
	for _, line := range lines {
		if code, found := strings.CutPrefix(line, operatorName+" "+country+" "); found {
			return code
		}
	}
	return ""
}

// CodeFirst returns what a payer dials to make the one-time code before the payment, with {amount} for the amount. It
// is "" for an operator and a country (alpha-2) that need no code.
func (c Capabilities) CodeFirst(operatorName, country string) string {
	return findDialled(c.CodesFirst, operatorName, country)
}

// Countries lists the countries (alpha-2) of the platform, each once.
func (c Capabilities) Countries() []string {
	var countries []string
	for _, r := range c.Reach {
		for _, country := range r.Countries {
			if !slices.Contains(countries, country) {
				countries = append(countries, country)
			}
		}
	}
	return countries
}

// Offers reports whether the platform offers a service: its operator, country, operation and channel.
func (c Capabilities) Offers(s Service) bool {
	return c.WhyNotOffered(s) == ""
}

// AccountOperations returns the operations that an account of the platform serves.
func (c Capabilities) AccountOperations() []string {
	operations := slices.Clone(c.Operations)
	if !c.SendsUserSMS {
		operations = append(operations, AccountUserSMS)
	}
	return operations
}

// LookupBurst is how many lookups an account may make at once: those of half a second, so that one second has at most
// half as many again as LookupsPerSecond.
func (c Capabilities) LookupBurst() int { return max(1, c.LookupsPerSecond/2) }

// WhyNotOffered returns why the platform does not offer a service, "" if it does.
func (c Capabilities) WhyNotOffered(s Service) string {
	switch {
	case !slices.Contains(c.Operations, s.Operation):
		return c.Platform + " has no " + s.Operation + "; it has " + strings.Join(c.Operations, ", ")
	case !c.Reaches(s.Operator, s.Country):
		return c.Platform + " does not reach " + s.Operator + " in " + s.Country + "; it reaches " + c.reachText()
	case s.Operation == AccountPay && s.Channel != "" && !slices.Contains(c.Channels, s.Channel):
		return c.Platform + " has no channel " + s.Channel + "; it has " + strings.Join(c.Channels, ", ")
	}
	return ""
}

// reachText lists the operators and their countries: "mtn in CI and CM".
func (c Capabilities) reachText() string {
	var texts []string
	for _, r := range c.Reach {
		texts = append(texts, r.Operator+" in "+strings.Join(r.Countries, ", "))
	}
	return strings.Join(texts, "; ")
}

// resendMargin is how long before the end of the platform's resend window the last retry is sent: the request itself
// takes time, and clocks differ (decision "repeat-window").
const resendMargin = 10 * time.Minute

// SafeResendWindow is how long after its first send a transaction may be sent again: ResendWindow without the margin.
func (c Capabilities) SafeResendWindow() time.Duration { return max(0, c.ResendWindow-resendMargin) }
