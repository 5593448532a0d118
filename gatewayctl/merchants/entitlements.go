package merchants

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operator"
)

// entitlements are the parts of a profile that people set. A list that is given replaces the stored one.
type entitlements struct {
	Operations  []string `name:"operation" enum:"charge,pay,sms" placeholder:"NAME" help:"charge, pay, sms."`
	Countries   []string `name:"country" placeholder:"CODE" help:"Countries (alpha-2), the home country first."`
	Operators   []string `name:"operator" placeholder:"NAME" help:"Operators, in the order of preference."`
	OnBehalfOf  []string `name:"on-behalf-of" placeholder:"TEXT" help:"Values of a charge's onBehalfOf."`
	SenderNames []string `name:"sender-name" placeholder:"TEXT" help:"Values of an SMS's senderName."`
	Hosts       []string `name:"host" placeholder:"HOST" help:"Hosts that notif_url may name."`
	NotifURL    string   `name:"notif-url" placeholder:"URL" help:"URL to notify if a payment names none."`
	ChargeNotif string   `enum:"on,off," default:"" placeholder:"on|off" help:"${charge_notif_help}"`
	SMSNotify   string   `name:"sms-notify-host" enum:"${sms_notify_enum}," default:"" help:"${sms_notify_help}"`
	session.LoopbackFlag
	limits
}

// apply sets the given parts of a profile and validates it.
func (c entitlements) apply(p *merchant.Profile) error {
	for _, part := range []struct {
		given []string
		to    *[]string
	}{
		{c.Operations, &p.Operations}, {output.MapAll(c.Countries, strings.ToUpper), &p.Countries},
		{output.MapAll(c.Operators, strings.ToLower), &p.Operators}, {c.OnBehalfOf, &p.OnBehalfOf},
		{c.SenderNames, &p.SenderNames}, {c.Hosts, &p.NotificationHosts},
	} {
		if len(part.given) > 0 {
			*part.to = part.given
		}
	}
	if len(c.Countries) > 0 && !slices.Contains(p.Countries, p.HomeCountry) {
		p.HomeCountry = ""
	}
	if c.NotifURL != "" {
		p.NotifURL = c.NotifURL
		if address, err := url.Parse(c.NotifURL); err == nil && len(p.NotificationHosts) == 0 && address.Host != "" {
			p.NotificationHosts = []string{address.Host}
		}
	}
	if c.ChargeNotif != "" {
		p.ChargeNotif = c.ChargeNotif == "on"
	}
	if c.SMSNotify != "" {
		p.SMSNotifyAnyHost = c.SMSNotify == "any"
	}
	faults := []error{c.limits.apply(p), p.Validate(c.AllowLoopback)}
	for _, name := range p.Operators {
		if !slices.Contains(operator.Names(), name) {
			faults = append(faults, accounts.UnknownOperatorError(name))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return output.UsageError("%w", err)
	}
	return nil
}

// limits are the flags of a profile's limits. A limit that is not given stays.
type limits struct {
	RequestsPerSecond *int     `placeholder:"N" help:"${requests_per_second_help}"`
	Burst             *int     `placeholder:"N" help:"Requests that may come at once; 0 for those of one second."`
	DailyAmounts      []string `name:"daily-amount" placeholder:"CURRENCY=AMOUNT" help:"${daily_amount_help}"`
}

func (c limits) apply(p *merchant.Profile) error {
	if c.RequestsPerSecond != nil {
		p.RequestsPerSecond = *c.RequestsPerSecond
		if p.RequestsPerSecond == 0 {
			p.Burst = 0
		}
	}
	if c.Burst != nil {
		p.Burst = *c.Burst
	}
	var faults []error
	for _, text := range c.DailyAmounts {
		currency, amount, _ := strings.Cut(text, "=")
		currency = strings.ToUpper(currency)
		exponent, known := market.CurrencyExponent(currency)
		minor, err := money.Parse(amount, exponent)
		switch {
		case !known:
			faults = append(faults, fmt.Errorf("daily amount %q: no country has this currency", text))
		case amount == noLimit:
			delete(p.DailyAmounts, currency)
		case err != nil:
			faults = append(faults, fmt.Errorf("daily amount %q: not an amount in %s", text, currency))
		default:
			if p.DailyAmounts == nil {
				p.DailyAmounts = map[string]int64{}
			}
			p.DailyAmounts[currency] = minor
		}
	}
	return errors.Join(faults...)
}

// noLimit removes a currency's limit.
const noLimit = "none"
