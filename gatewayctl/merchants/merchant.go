// Package merchants has gatewayctl's commands for merchants: profiles, credentials and the URLs that are notified.
package merchants

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operator"
)

var errNoChange = errors.New("nothing would change: the profile already is as requested")

// FieldChange is the difference of one field of a profile.
type FieldChange struct {
	Field  string `json:"field" col:"FIELD"`
	Before string `json:"before" col:"BEFORE"`
	After  string `json:"after" col:"AFTER"`
}

// changeProfile applies a change to a profile, stores it and shows the differences, which the audit record keeps too.
func changeProfile(s *session.Session, p *merchant.Profile, what string, change func() error) error {
	_, before := output.Cells(merchantViewOf(p, s.Now()), "row")
	if err := change(); err != nil {
		return err
	}
	p.UpdatedAt = s.Now().UTC().Truncate(time.Millisecond)
	var differences []FieldChange
	var details []string
	fields, after := output.Cells(merchantViewOf(p, s.Now()), "row")
	for i, field := range fields {
		if after[i] == before[i] || field == "updated" {
			continue
		}
		differences = append(differences, FieldChange{field, before[i], after[i]})
		from, to := cmp.Or(before[i], "none"), cmp.Or(after[i], "none")
		details = append(details, fmt.Sprintf("%s: %s -> %s", field, from, to))
	}
	if len(differences) == 0 {
		return errNoChange
	}
	return s.ExecuteAndShow(what, p.Name, func() (string, error) {
		return strings.Join(details, "; "), s.Stores.Merchants.Update(s, p)
	}, func() error { return session.ShowList(s, differences) })
}

// Commands are the commands below merchant.
type Commands struct {
	Add     merchantAdd     `cmd:"" help:"Onboard a merchant: create its profile and show its secrets once."`
	Show    merchantShow    `cmd:"" help:"Show a merchant, without secrets."`
	List    merchantList    `cmd:"" help:"List all merchants."`
	Change  merchantChange  `cmd:"" help:"Change a merchant's entitlements, limits and notification URL."`
	Suspend merchantSuspend `cmd:"" help:"Refuse all of a merchant's tokens, within a minute."`
	Resume  merchantResume  `cmd:"" help:"End a suspension."`
}

type merchantAdd struct {
	Name string `arg:"" help:"The merchant's name: at most 20 letters and digits. It cannot change."`
	entitlements
	Platform
}

// Run onboards the merchant and shows its secrets.
func (c *merchantAdd) Run(s *session.Session) error {
	if len(c.Countries) == 0 || len(c.Operators) == 0 {
		return output.UsageError("a merchant needs at least one --country and one --operator")
	}
	if len(c.Operations) == 0 {
		c.Operations = []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS}
	}
	if len(c.OnBehalfOf) == 0 {
		c.OnBehalfOf = []string{c.Name}
	}
	profile, err := merchant.New(c.Name, s.Rand, s.Now())
	if err != nil {
		return output.UsageError("%w", err)
	}
	if c.RequestsPerSecond == nil { // decision "merchant-limits"
		profile.RequestsPerSecond, profile.Burst = merchant.DefaultRequestsPerSecond, merchant.DefaultBurst
	}
	if err := c.apply(profile); err != nil {
		return err
	}
	var output Onboarding
	return s.ExecuteAndShow("add a merchant", c.Name, func() (string, error) {
		output, err = onboard(s, profile)
		output.Platform = c.Platform
		return "id " + s.RevealSecret(profile.ID), err
	}, func() error { return showOnboarding(s, output) })
}

func onboard(s *session.Session, p *merchant.Profile) (output Onboarding, err error) {
	token, tokenErr := merchant.LongLivedToken.Issue(p, s.Rand, s.Now())
	clientSecret, clientSecretErr := merchant.ClientSecret.Issue(p, s.Rand, s.Now())
	webhookSecret, webhookSecretErr := issueWebhookSecret(s, p, false)
	if err := errors.Join(tokenErr, clientSecretErr, webhookSecretErr); err != nil {
		return output, err
	}
	if err := s.Stores.Merchants.Create(s, p); err != nil {
		return output, err
	}
	view := merchantViewOf(p, s.Now())
	view.ID = s.RevealSecret(p.ID) // the id of a dry run is never used
	view.SMS = smsRulesOf(s, p)
	warnUnserved(s, p)
	return Onboarding{
		View: view, AccessToken: s.RevealSecret(token), ClientID: view.ID,
		ClientSecret: s.RevealSecret(clientSecret), WebhookSecret: webhookSecret.Secret,
	}, nil
}

type merchantShow struct{ session.MerchantArgument }

// Run shows the profile.
func (c *merchantShow) Run(s *session.Session, p *merchant.Profile) error {
	view := merchantViewOf(p, s.Now())
	view.SMS = smsRulesOf(s, p)
	return s.Show(view, append(output.Rows(view), smsRows(view.SMS)...))
}

type merchantList struct{}

// Run lists the merchants by name.
func (c *merchantList) Run(s *session.Session, profiles []*merchant.Profile) error {
	views := output.MapAll(profiles, func(p *merchant.Profile) View { return merchantViewOf(p, s.Now()) })
	slices.SortFunc(views, func(a, b View) int {
		return cmp.Compare(merchant.NormalizeName(a.Name), merchant.NormalizeName(b.Name))
	})
	return session.ShowList(s, views)
}

type merchantChange struct {
	session.MerchantArgument
	entitlements
	HomeCountry string `name:"home-country" placeholder:"CODE" help:"The country of a charge that names none."`
	NoSenders   bool   `name:"any-sender-name" help:"Allow any senderName."`
}

// Run changes the profile and shows the differences.
func (c *merchantChange) Run(s *session.Session, p *merchant.Profile) error {
	return changeProfile(s, p, "change a merchant", func() error {
		if c.NoSenders {
			p.SenderNames = nil
		}
		p.HomeCountry = cmp.Or(strings.ToUpper(c.HomeCountry), p.HomeCountry)
		if err := c.apply(p); err != nil {
			return err
		}
		warnUnserved(s, p)
		return nil
	})
}

type merchantSuspend struct{ session.MerchantArgument }

// Run suspends the merchant.
func (c *merchantSuspend) Run(s *session.Session, p *merchant.Profile) error {
	return changeProfile(s, p, "suspend a merchant", func() error {
		if p.Status == merchant.StatusSuspended {
			return errNoChange // a second suspension would only revoke short-lived tokens again
		}
		merchant.Suspend(p, s.Now())
		return nil
	})
}

type merchantResume struct{ session.MerchantArgument }

// Run ends the suspension.
func (c *merchantResume) Run(s *session.Session, p *merchant.Profile) error {
	return changeProfile(s, p, "resume a merchant", func() error {
		merchant.Resume(p, s.Now())
		return nil
	})
}

// entitlements are the parts of a profile that people set. A list that is given replaces the stored one.
type entitlements struct {
	Operations  []string `name:"operation" enum:"${operations}" placeholder:"NAME" help:"${enum}."`
	Countries   []string `name:"country" placeholder:"CODE" help:"Countries (alpha-2), the home country first."`
	Operators   []string `name:"operator" placeholder:"NAME" help:"Operators, in the order of preference."`
	OnBehalfOf  []string `name:"on-behalf-of" placeholder:"TEXT" help:"Values of a charge's onBehalfOf."`
	SenderNames []string `name:"sender-name" placeholder:"TEXT" help:"Values of an SMS's senderName."`
	Hosts       []string `name:"host" placeholder:"HOST" help:"Hosts that notif_url may name."`
	NotifURL    string   `name:"notif-url" placeholder:"URL" help:"URL to notify if a payment names none."`
	ChargeNotif string   `enum:"on,off," default:"" placeholder:"on|off" help:"${charge_notif_help}"`
	SMSNotify   string   `name:"sms-notify-host" enum:"${sms_notify_enum}," default:"" help:"${sms_notify_help}"`
	DayShards   *int     `placeholder:"N" help:"${day_shards_help}"`
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
	if c.DayShards != nil {
		p.SetDayShards(*c.DayShards)
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

// Hosts are the commands below host.
type Hosts struct {
	Add    hostAdd    `cmd:"" help:"Add hosts."`
	Remove hostRemove `cmd:"" help:"Remove hosts. Requests that were accepted before are still notified."`
	List   hostList   `cmd:"" help:"List the hosts."`
}

type hostArguments struct {
	session.MerchantArgument
	Hosts []string `arg:"" name:"host" help:"host, or host:port."`
	session.LoopbackFlag
}

// replaceHosts stores the profile with other hosts.
func (c hostArguments) replaceHosts(s *session.Session, p *merchant.Profile, what string, hosts []string) error {
	return changeProfile(s, p, what, func() error {
		p.NotificationHosts = hosts
		if err := p.Validate(c.AllowLoopback); err != nil {
			return output.UsageError("%w", err)
		}
		return nil
	})
}

type hostAdd struct{ hostArguments }

// Run adds the hosts that the profile does not have.
func (c *hostAdd) Run(s *session.Session, p *merchant.Profile) error {
	hosts := p.NotificationHosts
	for _, host := range c.Hosts {
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return c.replaceHosts(s, p, "add notification hosts", hosts)
}

type hostRemove struct{ hostArguments }

// Run removes the hosts. It refuses the host of the merchant's own notif_url: change the URL first.
func (c *hostRemove) Run(s *session.Session, p *merchant.Profile) error {
	hosts := slices.DeleteFunc(slices.Clone(p.NotificationHosts), func(host string) bool {
		return slices.Contains(c.Hosts, host)
	})
	return c.replaceHosts(s, p, "remove notification hosts", hosts)
}

type hostList struct{ session.MerchantArgument }

// Run lists the hosts.
func (c *hostList) Run(s *session.Session, p *merchant.Profile) error {
	rows := output.MapAll(p.NotificationHosts, func(host string) []string { return []string{host} })
	return s.Show(output.NonNil(p.NotificationHosts), append(output.Table{{"HOST"}}, rows...))
}
