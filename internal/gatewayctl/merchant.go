package gatewayctl

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

type merchantCommands struct {
	Add     merchantAdd     `cmd:"" help:"Onboard a merchant: a profile, a token, a client secret and a webhook secret, shown this once."`
	Show    merchantShow    `cmd:"" help:"Show a merchant, without secrets."`
	List    merchantList    `cmd:"" help:"List all merchants."`
	Change  merchantChange  `cmd:"" help:"Change what a merchant may use and where it is notified."`
	Suspend merchantSuspend `cmd:"" help:"Refuse all of a merchant's tokens, within a minute."`
	Resume  merchantResume  `cmd:"" help:"End a suspension."`
}

// merchantArgument is the merchant that a command is about.
type merchantArgument struct {
	Name string `arg:"" help:"The merchant's name or id."`
}

// entitlements are the parts of a profile that people fill in. A list that is given takes the place of the one there is.
type entitlements struct {
	Operations    []string `name:"operation" enum:"charge,pay,sms" placeholder:"NAME" help:"Operations: charge, pay, sms."`
	Countries     []string `name:"country" placeholder:"CODE" help:"Countries (alpha-2), the home country first."`
	Operators     []string `name:"operator" placeholder:"NAME" help:"Operators, in the order of preference."`
	OnBehalfOf    []string `name:"on-behalf-of" placeholder:"TEXT" help:"Values of a charge's onBehalfOf."`
	SenderNames   []string `name:"sender-name" placeholder:"TEXT" help:"Values of an SMS's senderName; none allows any."`
	Hosts         []string `name:"host" placeholder:"HOST" help:"Hosts that notif_url may name."`
	NotifURL      string   `name:"notif-url" placeholder:"URL" help:"Where the merchant is notified if a payment names no URL."`
	AllowLoopback bool     `variable:"ALLOW_LOOPBACK" help:"Accept addresses of this machine: for the local run alone, where it is understood."`
	limits
}

// apply fills a profile in and checks it.
func (c entitlements) apply(p *merchant.Profile) error {
	for _, part := range []struct {
		given []string
		to    *[]string
	}{
		{c.Operations, &p.Operations}, {upperAll(c.Countries), &p.Countries}, {lowerAll(c.Operators), &p.Operators},
		{c.OnBehalfOf, &p.OnBehalfOf}, {c.SenderNames, &p.SenderNames}, {c.Hosts, &p.NotificationHosts},
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
	faults := []error{c.limits.apply(p), p.Validate(c.AllowLoopback)}
	for _, name := range p.Operators {
		if _, known := operator.FindCapabilities(name); !known {
			faults = append(faults, fmt.Errorf("operator %q is not one of %s", name, strings.Join(operator.Names(), ", ")))
		}
	}
	return errors.Join(faults...)
}

func upperAll(texts []string) []string { return mapTexts(texts, strings.ToUpper) }

func lowerAll(texts []string) []string { return mapTexts(texts, strings.ToLower) }

func mapTexts(texts []string, change func(string) string) []string {
	var changed []string
	for _, text := range texts {
		changed = append(changed, change(text))
	}
	return changed
}

type merchantAdd struct {
	Name string `arg:"" help:"The merchant's name: letters and digits, at most 20; for ever."`
	entitlements
}

// onboardingResult is what a merchant gets at its onboarding.
type onboardingResult struct {
	merchantView
	AccessToken   string `json:"access_token"`
	ClientID      string `json:"client_id"`
	ClientSecret  string `json:"client_secret"`
	WebhookSecret string `json:"webhook_secret"`
}

// Run onboards the merchant and shows its secrets.
func (c *merchantAdd) Run(s *session) error {
	if len(c.Countries) == 0 || len(c.Operators) == 0 {
		return usageError("a merchant needs at least one --country and one --operator")
	}
	if len(c.Operations) == 0 {
		c.Operations = []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS}
	}
	if len(c.OnBehalfOf) == 0 {
		c.OnBehalfOf = []string{c.Name}
	}
	profile, err := merchant.New(c.Name, s.Rand, s.Now())
	if err != nil {
		return usageError("%w", err)
	}
	if err := c.apply(profile); err != nil {
		return usageError("%w", err)
	}
	var output onboardingResult
	err = s.changes.execute(Action{"add a merchant", c.Name}, func() (string, error) {
		output, err = c.onboard(s, profile)
		return "id " + s.changes.revealSecret(profile.ID), err
	})
	if err != nil {
		return err
	}
	shown := *profile
	shown.ID = output.ID
	rows := append(profileRows(&shown),
		[]string{"access token", output.AccessToken}, []string{"client id", output.ClientID},
		[]string{"client secret", output.ClientSecret}, []string{"webhook secret", output.WebhookSecret})
	return s.show(output, rows)
}

// onboard issues the secrets and stores the profile.
func (c *merchantAdd) onboard(s *session, p *merchant.Profile) (onboardingResult, error) {
	token, err := merchant.IssueToken(p, s.Rand, s.Now())
	if err != nil {
		return onboardingResult{}, err
	}
	clientSecret, err := merchant.IssueClientSecret(p, s.Rand, s.Now())
	if err != nil {
		return onboardingResult{}, err
	}
	webhookSecret, err := issueWebhookSecret(s, p, false)
	if err != nil {
		return onboardingResult{}, err
	}
	if err := s.changes.createMerchant(p); err != nil {
		return onboardingResult{}, err
	}
	view := merchantViewOf(p, s.Now())
	view.ID = s.changes.revealSecret(p.ID) // a dry run's is never used
	return onboardingResult{
		merchantView: view, AccessToken: s.changes.revealSecret(token), ClientID: view.ID,
		ClientSecret: s.changes.revealSecret(clientSecret), WebhookSecret: s.changes.revealSecret(webhookSecret),
	}, nil
}

type merchantShow struct{ merchantArgument }

// Run shows the profile.
func (c *merchantShow) Run(s *session) error {
	p, err := s.findMerchant(c.Name)
	if err != nil {
		return err
	}
	return s.show(merchantViewOf(p, s.Now()), profileRows(p))
}

type merchantList struct{}

// Run lists the merchants by name.
func (c *merchantList) Run(s *session) error {
	stores, err := s.openStores()
	if err != nil {
		return err
	}
	ids, err := stores.Merchants.IDs(s)
	if err != nil {
		return err
	}
	views := []merchantView{}
	for _, id := range ids {
		p, err := stores.Merchants.Profile(s, id)
		if err != nil {
			return err
		}
		if p != nil {
			views = append(views, merchantViewOf(p, s.Now()))
		}
	}
	slices.SortFunc(views, func(a, b merchantView) int {
		return cmp.Compare(merchant.NormalizeName(a.Name), merchant.NormalizeName(b.Name))
	})
	rows := table{{"NAME", "ID", "STATUS", "OPERATIONS", "COUNTRIES", "OPERATORS", "CREATED"}}
	for _, v := range views {
		rows = append(rows, []string{v.Name, v.ID, v.Status, joinComma(v.Operations), joinComma(v.Countries), joinComma(v.Operators), formatTime(v.Created)})
	}
	return s.show(views, rows)
}

type merchantChange struct {
	merchantArgument
	entitlements
	HomeCountry string `name:"home-country" placeholder:"CODE" help:"The country of a charge that names none."`
	NoSenders   bool   `name:"any-sender-name" help:"Allow any senderName."`
}

// Run changes the profile and shows what is different.
func (c *merchantChange) Run(s *session) error {
	return changeProfile(s, c.Name, "change a merchant", func(p *merchant.Profile) error {
		if c.NoSenders {
			p.SenderNames = nil
		}
		p.HomeCountry = firstNonEmpty(strings.ToUpper(c.HomeCountry), p.HomeCountry)
		p.UpdatedAt = s.Now().UTC().Truncate(time.Millisecond)
		if err := c.apply(p); err != nil {
			return usageError("%w", err)
		}
		return nil
	})
}

type merchantSuspend struct{ merchantArgument }

// Run suspends the merchant.
func (c *merchantSuspend) Run(s *session) error {
	return changeProfile(s, c.Name, "suspend a merchant", func(p *merchant.Profile) error {
		if p.Status == merchant.StatusSuspended {
			return errNoChange // its short-lived tokens are refused as it is
		}
		merchant.Suspend(p, s.Now())
		return nil
	})
}

type merchantResume struct{ merchantArgument }

// Run ends the suspension.
func (c *merchantResume) Run(s *session) error {
	return changeProfile(s, c.Name, "resume a merchant", func(p *merchant.Profile) error {
		merchant.Resume(p, s.Now())
		return nil
	})
}

// errNoChange refuses a change that is none.
var errNoChange = errors.New("nothing would be different")

// fieldChange is one field that a change gives another value.
type fieldChange struct {
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// changeProfile changes a stored profile and shows the differences, which the audit record keeps too.
func changeProfile(s *session, name, what string, change func(*merchant.Profile) error) error {
	p, err := s.findMerchant(name)
	if err != nil {
		return err
	}
	before := profileRows(p)
	if err := change(p); err != nil {
		return err
	}
	differences, words := []fieldChange{}, []string{}
	rows := table{{"FIELD", "BEFORE", "AFTER"}}
	for i, row := range profileRows(p) {
		if row[1] == before[i][1] || row[0] == "updated" {
			continue
		}
		differences = append(differences, fieldChange{row[0], before[i][1], row[1]})
		rows = append(rows, []string{row[0], before[i][1], row[1]})
		words = append(words, fmt.Sprintf("%s: %s -> %s", row[0], firstNonEmpty(before[i][1], "none"), firstNonEmpty(row[1], "none")))
	}
	if len(differences) == 0 {
		return errNoChange
	}
	err = s.changes.execute(Action{what, p.Name}, func() (string, error) {
		return strings.Join(words, "; "), s.changes.updateMerchant(p)
	})
	if err != nil {
		return err
	}
	return s.show(differences, rows)
}
