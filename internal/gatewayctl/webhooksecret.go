package gatewayctl

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"mobilegateway/shared/keyring"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/webhook"
)

type webhookSecretCommands struct {
	Show   webhookShow   `cmd:"" help:"Show a webhook secret again. It needs --yes, and the audit records it."`
	Rotate webhookRotate `cmd:"" help:"Issue a webhook secret; the previous one also signs until it is revoked."`
	Revoke webhookRevoke `cmd:"" help:"Stop signing with a version."`
	List   webhookList   `cmd:"" help:"List the versions, without the secrets."`
}

// readWebhookRing reads the ring from which webhook secrets are derived.
func readWebhookRing(s *session) (*keyring.Ring, error) {
	current, err := readSecret(s, s.WebhookKeySecret, "WEBHOOK_KEY_SECRET")
	if err != nil {
		return nil, err
	}
	if len(current.Value) == 0 {
		return nil, errors.New("the webhook key ring has no key yet: run keys add webhooks")
	}
	return keyring.Parse(current.Value)
}

// issueWebhookSecret adds a version to a profile, derived from the key that signs now. It does not store the profile.
// replace drops the older of two live versions.
func issueWebhookSecret(s *session, p *merchant.Profile, replace bool) (output webhookSecretOutput, err error) {
	ring, err := readWebhookRing(s)
	if err != nil {
		return output, err
	}
	key := ring.SigningKey(s.Now(), s.SecretCache)
	issued, err := merchant.IssueWebhookSecret(p, key.Number, replace, s.Now())
	if err != nil {
		return output, err
	}
	return newWebhookSecretOutput(s, p, key, issued), nil
}

// profileMargin is the longest time from reading a profile to a post with its address and secrets.
const profileMargin = 5 * time.Second

// effectiveFrom returns when every function posts by a profile that was changed at a time: until then one may have the
// profile of before in its cache.
func (s *session) effectiveFrom(changed time.Time) time.Time {
	return changed.Add(s.ProfileCache + profileMargin)
}

// webhookSecretOutput is a webhook secret in clear text. Before SignsFrom a function may have the profile of before in
// its cache, and sign without the secret.
type webhookSecretOutput struct {
	Merchant  string    `json:"merchant" row:"merchant"`
	Version   int       `json:"version" row:"version"`
	Secret    string    `json:"webhook_secret" row:"webhook secret"`
	SignsFrom time.Time `json:"signs_from" row:"signs every notification from"`
}

func newWebhookSecretOutput(
	s *session, p *merchant.Profile, key keyring.Key, w merchant.WebhookSecret,
) webhookSecretOutput {
	return webhookSecretOutput{
		p.Name, w.Version, s.revealSecret(webhook.DeriveSecret(key, p.ID, w.Version).Text()),
		s.effectiveFrom(w.CreatedAt),
	}
}

type webhookShow struct {
	merchantArgument
	Version int `arg:"" optional:"" help:"The version in the list; the newest if not given."`
}

// Run shows a secret. The audit records it like a change, because the person then has access.
func (c *webhookShow) Run(s *session, p *merchant.Profile) error {
	ring, err := readWebhookRing(s)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(p.WebhookSecrets, func(w merchant.WebhookSecret) bool {
		return c.Version == 0 || w.Version == c.Version
	})
	if i < 0 {
		return merchant.ErrCredentialNotFound
	}
	w := p.WebhookSecrets[i]
	key, err := findWebhookKey(ring, w)
	if err != nil {
		return err
	}
	output := newWebhookSecretOutput(s, p, key, w)
	return s.executeAndShow("show a webhook secret", p.Name,
		func() (string, error) { return fmt.Sprintf("version %d", w.Version), nil },
		func() error { return s.showView(output) })
}

type webhookRotate struct {
	merchantArgument
	Force bool `help:"If two are live already, drop the older at once."`
}

// Run adds a version.
func (c *webhookRotate) Run(s *session, p *merchant.Profile) error {
	output, err := issueWebhookSecret(s, p, c.Force)
	if err != nil {
		return err
	}
	return s.executeAndShow("rotate the webhook secret", p.Name, func() (string, error) {
		return fmt.Sprint("signs with ", merchantViewOf(p, s.Now()).WebhookSecrets), s.stores.Merchants.Update(s, p)
	}, func() error {
		if s.Yes && len(p.WebhookSecrets) > 1 {
			fmt.Fprintf(s.Stderr, "Version %d signs every notification from %s on, beside version %d. "+
				"Until then some have only the signature of version %d.\n", output.Version,
				formatTime(output.SignsFrom), p.WebhookSecrets[1].Version, p.WebhookSecrets[1].Version)
		}
		return s.showView(output)
	})
}

type webhookRevoke struct {
	merchantArgument
	Version int  `arg:"" help:"The version in the list."`
	Last    bool `help:"Revoke the only version: no notification is sent until a rotate."`
}

// Run drops a version. The only one needs --last: no notification is sent unsigned (decision "notifications").
func (c *webhookRevoke) Run(s *session, p *merchant.Profile) error {
	err := changeProfile(s, p, fmt.Sprintf("revoke webhook secret %d", c.Version), func() error {
		err := merchant.RevokeWebhookSecret(p, c.Version, s.Now())
		if err == nil && len(p.WebhookSecrets) == 0 && !c.Last {
			return fmt.Errorf("version %d is the only webhook secret of %s, and without one no notification is sent: "+
				"rotate first, or use --last", c.Version, p.Name)
		}
		return err
	})
	if err == nil && len(p.WebhookSecrets) == 0 {
		fmt.Fprintf(s.Stderr, "%s has no webhook secret: no notification is sent. "+
			"Each attempt fails as unsigned and is retried by the schedule. "+
			"To resume: webhook-secret rotate, then deliveries replay --dead-letters.\n", p.Name)
	}
	return err
}

type webhookList struct{ merchantArgument }

// Run lists the versions, the newest first.
func (c *webhookList) Run(s *session, p *merchant.Profile) error {
	return showList(s, merchantViewOf(p, s.Now()).WebhookSecrets)
}
