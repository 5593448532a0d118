// Package merchants has gatewayctl's commands for merchants: profiles, credentials and the URLs that are notified.
package merchants

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/merchant"
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
		return c.apply(p)
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
