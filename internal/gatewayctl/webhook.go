package gatewayctl

import (
	"errors"
	"fmt"
	"strconv"

	"mobilegateway/shared/keyring"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/webhook"
)

type webhookSecretCommands struct {
	Show   webhookShow   `cmd:"" help:"Show a webhook secret again; it is recorded, and needs --yes."`
	Rotate webhookRotate `cmd:"" help:"Issue a webhook secret; the one before signs too until it is revoked."`
	Revoke webhookRevoke `cmd:"" help:"Stop signing with a version."`
	List   webhookList   `cmd:"" help:"List the versions, without the secrets."`
}

// readWebhookRing reads the ring that webhook secrets are derived from.
func readWebhookRing(s *session) (*keyring.Ring, error) {
	current, err := readSecret(s, s.WebhookKeySecret, "WEBHOOK_KEY_SECRET")
	if err != nil {
		return nil, err
	}
	if len(current.Value) == 0 {
		return nil, errors.New("the ring for webhooks has no key yet: keys add webhooks")
	}
	return keyring.Parse(current.Value)
}

// issueWebhookSecret adds a version to a profile, derived from the key that signs now, and gives its text.
func issueWebhookSecret(s *session, p *merchant.Profile, replace bool) (string, error) {
	ring, err := readWebhookRing(s)
	if err != nil {
		return "", err
	}
	key := ring.SigningKey(s.Now(), s.SecretCache)
	version, err := merchant.IssueWebhookSecret(p, key.Number, replace, s.Now())
	if err != nil {
		return "", err
	}
	return webhook.DeriveSecret(key, p.ID, version.Version).Text(), nil
}

// webhookSecretOutput is a webhook secret in the clear.
type webhookSecretOutput struct {
	Merchant string `json:"merchant"`
	Version  int    `json:"version"`
	Secret   string `json:"webhook_secret"`
}

func (w webhookSecretOutput) show(s *session) error {
	return s.show(w, table{{"merchant", w.Merchant}, {"version", strconv.Itoa(w.Version)}, {"webhook secret", w.Secret}})
}

type webhookShow struct {
	merchantArgument
	Version int `placeholder:"NUMBER" help:"Which version; without, the newest."`
}

// Run shows a secret: that somebody saw it is recorded as a change of access is.
func (c *webhookShow) Run(s *session) error {
	p, err := s.findMerchant(c.Name)
	if err != nil {
		return err
	}
	ring, err := readWebhookRing(s)
	if err != nil {
		return err
	}
	for _, w := range p.WebhookSecrets {
		if c.Version != 0 && w.Version != c.Version {
			continue
		}
		key, found := ring.FindKey(w.KeyNumber)
		if !found {
			return fmt.Errorf("the ring for webhooks has no key %d", w.KeyNumber)
		}
		err := s.changes.execute(Action{"show a webhook secret", p.Name}, func() (string, error) {
			return fmt.Sprintf("version %d", w.Version), nil
		})
		if err != nil {
			return err
		}
		return webhookSecretOutput{p.Name, w.Version, s.changes.revealSecret(webhook.DeriveSecret(key, p.ID, w.Version).Text())}.show(s)
	}
	return merchant.ErrCredentialNotFound
}

type webhookRotate struct {
	merchantArgument
	Force bool `help:"Where two are live already, drop the older at once."`
}

// Run adds a version.
func (c *webhookRotate) Run(s *session) error {
	p, err := s.findMerchant(c.Name)
	if err != nil {
		return err
	}
	text, err := issueWebhookSecret(s, p, c.Force)
	if err != nil {
		return err
	}
	newest := p.WebhookSecrets[0]
	err = s.changes.execute(Action{"rotate the webhook secret", p.Name}, func() (string, error) {
		return "signs with " + formatWebhookSecrets(p.WebhookSecrets), s.changes.updateMerchant(p)
	})
	if err != nil {
		return err
	}
	return webhookSecretOutput{p.Name, newest.Version, s.changes.revealSecret(text)}.show(s)
}

type webhookRevoke struct {
	merchantArgument
	Version int  `arg:"" help:"The version in the list."`
	Last    bool `help:"Revoke it though it is the only one: no notification is sent until a rotate."`
}

// Run drops a version. The only one is dropped if that is said alone: nothing goes out unsigned (decision "notifications").
func (c *webhookRevoke) Run(s *session) error {
	var unsigned string
	err := changeProfile(s, c.Name, fmt.Sprintf("revoke webhook secret %d", c.Version), func(p *merchant.Profile) error {
		if err := merchant.RevokeWebhookSecret(p, c.Version, s.Now()); err != nil || len(p.WebhookSecrets) > 0 {
			return err
		}
		if !c.Last {
			return fmt.Errorf("it is the only webhook secret of %s, and without one no notification is sent: rotate first, or say --last", p.Name)
		}
		unsigned = p.Name
		return nil
	})
	if err == nil && unsigned != "" {
		fmt.Fprintf(s.Stderr, "Without a webhook secret no notification is sent to %s: each fails as unsigned, and is tried again by the schedule, until webhook-secret rotate; deliveries replay --dead sends what was given up.\n", unsigned)
	}
	return err
}

type webhookList struct{ merchantArgument }

// Run lists the versions, the newest first.
func (c *webhookList) Run(s *session) error {
	p, err := s.findMerchant(c.Name)
	if err != nil {
		return err
	}
	rows := table{{"VERSION", "KEY", "CREATED"}}
	for _, w := range p.WebhookSecrets {
		rows = append(rows, []string{strconv.Itoa(w.Version), strconv.Itoa(w.KeyNumber), formatTime(w.CreatedAt)})
	}
	return s.show(merchantViewOf(p, s.Now()).WebhookSecrets, rows)
}
