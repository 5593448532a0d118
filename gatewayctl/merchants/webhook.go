package merchants

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/keys"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/webhook"
)

// WebhookSecrets are the commands below webhook-secret.
type WebhookSecrets struct {
	Show   webhookShow   `cmd:"" help:"Show a webhook secret again. It needs --yes, and the audit records it."`
	Rotate webhookRotate `cmd:"" help:"Issue a webhook secret; the previous one also signs until it is revoked."`
	Revoke webhookRevoke `cmd:"" help:"Stop signing with a version."`
	List   webhookList   `cmd:"" help:"List the versions, without the secrets."`
}

// ProvideRing reads the ring from which webhook secrets are derived, also for the Run methods below webhook-secret
// (kong's provider).
func (WebhookSecrets) ProvideRing(s *session.Session) (*keyring.Ring, error) {
	ring, err := keys.RingArgument{Ring: keys.Webhooks}.Parse(s)
	if err == nil && ring == nil {
		err = errors.New("the webhook key ring has no key yet: run keys add webhooks")
	}
	return ring, err
}

// issueWebhookSecret adds a version to a profile, derived from the key that signs now. It does not store the profile.
// replace drops the older of two live versions.
func issueWebhookSecret(s *session.Session, p *merchant.Profile, replace bool) (output WebhookSecretOutput, err error) {
	ring, err := WebhookSecrets{}.ProvideRing(s)
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

// WebhookSecretOutput is a webhook secret in clear text. Before SignsFrom a function may have the profile of before in
// its cache, and sign without the secret.
type WebhookSecretOutput struct {
	Merchant  string    `json:"merchant" row:"merchant"`
	Version   int       `json:"version" row:"version"`
	Secret    string    `json:"webhook_secret" row:"webhook secret"`
	SignsFrom time.Time `json:"signs_from" row:"signs every notification from"`
}

func newWebhookSecretOutput(
	s *session.Session, p *merchant.Profile, key keyring.Key, w merchant.WebhookSecret,
) WebhookSecretOutput {
	return WebhookSecretOutput{
		p.Name, w.Version, s.RevealSecret(webhook.DeriveSecret(key, p.ID, w.Version).Text()),
		s.EffectiveFrom(w.CreatedAt),
	}
}

type webhookShow struct {
	session.MerchantArgument
	Version int `arg:"" optional:"" help:"The version in the list; the newest if not given."`
}

// Run shows a secret. The audit records it like a change, because the person then has access.
func (c *webhookShow) Run(s *session.Session, p *merchant.Profile, ring *keyring.Ring) error {
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
	return s.ExecuteAndShow("show a webhook secret", p.Name,
		func() (string, error) { return fmt.Sprintf("version %d", w.Version), nil },
		func() error { return s.ShowView(output) })
}

type webhookRotate struct {
	session.MerchantArgument
	Force bool `help:"If two are live already, drop the older at once."`
}

// Run adds a version.
func (c *webhookRotate) Run(s *session.Session, p *merchant.Profile) error {
	issued, err := issueWebhookSecret(s, p, c.Force)
	if err != nil {
		return err
	}
	return s.ExecuteAndShow("rotate the webhook secret", p.Name, func() (string, error) {
		return fmt.Sprint("signs with ", merchantViewOf(p, s.Now()).WebhookSecrets), s.Stores.Merchants.Update(s, p)
	}, func() error {
		if s.Yes && len(p.WebhookSecrets) > 1 {
			fmt.Fprintf(s.Stderr, "Version %d signs every notification from %s on, beside version %d. "+
				"Until then some have only the signature of version %d.\n", issued.Version,
				output.FormatTime(issued.SignsFrom), p.WebhookSecrets[1].Version, p.WebhookSecrets[1].Version)
		}
		return s.ShowView(issued)
	})
}

type webhookRevoke struct {
	session.MerchantArgument
	Version int  `arg:"" help:"The version in the list."`
	Last    bool `help:"Revoke the only version: no notification is sent until a rotate."`
}

// Run drops a version. The only one needs --last: no notification is sent unsigned (decision "notifications").
func (c *webhookRevoke) Run(s *session.Session, p *merchant.Profile) error {
	err := changeProfile(s, p, fmt.Sprintf("revoke webhook secret %d", c.Version), func() error {
		err := merchant.RevokeWebhookSecret(p, c.Version, s.Now())
		if err == nil && len(p.WebhookSecrets) == 0 && !c.Last {
			return fmt.Errorf("version %d is the only webhook secret of %s, and without one no notification is sent: "+
				"rotate first, or use --last", c.Version, p.Name)
		}
		return err
	})
	if err == nil && len(p.WebhookSecrets) == 0 {
		fmt.Fprintf(s.Stderr, "With this change %s has no webhook secret: no notification is sent. "+
			"Each attempt fails as unsigned and is retried by the schedule. "+
			"To resume: webhook-secret rotate, then deliveries replay --dead-letters.\n", p.Name)
	}
	return err
}

type webhookList struct{ session.MerchantArgument }

// Run lists the versions, the newest first.
func (c *webhookList) Run(s *session.Session, p *merchant.Profile) error {
	return session.ShowList(s, merchantViewOf(p, s.Now()).WebhookSecrets)
}

// findWebhookKey returns the key from which a secret is derived.
func findWebhookKey(ring *keyring.Ring, w merchant.WebhookSecret) (keyring.Key, error) {
	key, found := ring.FindKey(w.KeyNumber)
	if !found {
		return key, fmt.Errorf("the webhook key ring has no key %d: run webhook-secret rotate", w.KeyNumber)
	}
	return key, nil
}

// signingSecrets derives the secrets that sign a merchant's notifications, newest first.
func signingSecrets(s *session.Session, p *merchant.Profile) (secrets []webhook.Secret, err error) {
	ring, err := WebhookSecrets{}.ProvideRing(s)
	if err != nil {
		return nil, err
	}
	for _, w := range p.WebhookSecrets {
		key, err := findWebhookKey(ring, w)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, webhook.DeriveSecret(key, p.ID, w.Version))
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("%s has no webhook secret: run webhook-secret rotate", p.Name)
	}
	return secrets, nil
}

// Webhook are the commands below webhook.
type Webhook struct {
	Test webhookTest `cmd:"" help:"Post a signed sample to a merchant's address, and show the response."`
}

type webhookTest struct {
	Merchant string `required:"" placeholder:"NAME" help:"The merchant's name or id."`
	urlFlag
	Timeout time.Duration `variable:"WEBHOOK_TIMEOUT" default:"15s" help:"The longest wait for a response."`
	session.LoopbackFlag
}

// Run posts the sample with --yes. It does not belong to a transaction: nothing is stored, and neither a 410 nor a
// failure counts for the endpoint.
func (c *webhookTest) Run(s *session.Session) error {
	p, err := s.FindMerchant(c.Merchant)
	if err != nil {
		return err
	}
	address, err := c.testedAddress(s, p)
	if err != nil {
		return err
	}
	policy := p.NotificationPolicy(c.AllowLoopback)
	if err := outgoing.CheckNotificationURL(address, policy); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	secrets, err := signingSecrets(s, p)
	if err != nil {
		return err
	}
	random := make([]byte, 8)
	if _, err := io.ReadFull(s.Rand, random); err != nil {
		return err
	}
	request := webhook.Request{
		URL: address, ID: "test_" + hex.EncodeToString(random), Body: sampleNotification(p, s.Now()), Secrets: secrets,
		KeepBytes: maxResponseText,
	}
	result := WebhookTestResult{
		URL: address, WebhookID: request.ID, Sample: string(request.Body),
		Versions: output.MapAll(p.WebhookSecrets, func(w merchant.WebhookSecret) int { return w.Version }),
	}
	err = s.Execute("test a webhook", p.Name+" "+address, func() (string, error) {
		if !s.Yes {
			return "a signed sample would be posted", nil
		}
		sender := webhook.NewSender(outgoing.NewClient(policy, nil), c.Timeout, s.Now)
		return result.add(sender.Deliver(s, request))
	})
	return errors.Join(err, s.ShowView(result))
}

// testedAddress is the address of --url. Without it, it is the merchant's only disabled address, which may be one that
// requests named, or else its own notif_url. The person chooses one of several disabled addresses.
func (c *webhookTest) testedAddress(s *session.Session, p *merchant.Profile) (string, error) {
	seen, err := readURLs(s, p, entries.FirstDay(p, s.Now()))
	if err != nil {
		return "", err
	}
	healths, err := EndpointHealths(s, p, slices.Sorted(maps.Keys(seen)))
	disabled := slices.DeleteFunc(healths, webhook.Health.Enabled)
	switch {
	case err != nil:
		return "", err
	case c.URL != "" || len(disabled) == 0:
		return c.address(p, seen)
	case len(disabled) == 1:
		fmt.Fprintln(s.Stderr, "The address of the test is the merchant's disabled one:", disabled[0].URL)
		return disabled[0].URL, nil
	}
	return "",
		output.UsageError("%d addresses of %s are disabled: name one with --url, such as %s; endpoint list shows all",
			len(disabled), p.Name, disabled[0].URL)
}

const maxResponseText = 2 << 10

// WebhookTestResult is the sample and the response to it.
type WebhookTestResult struct {
	URL       string `json:"url" row:"url"`
	WebhookID string `json:"webhook_id" row:"webhook-id"`
	Versions  []int  `json:"secret_versions" row:"signed with versions"`
	Sample    string `json:"sample" row:"sample"`
	Delivered *bool  `json:"delivered,omitempty" row:"delivered"` // nil in a dry run
	Status    int    `json:"status,omitempty" row:"status"`
	Reason    string `json:"reason,omitempty" row:"reason"`
	Millis    int64  `json:"duration_ms,omitempty" row:"milliseconds"`
	Response  string `json:"response,omitempty" row:"response"`
}

// add adds the response, and describes it.
func (r *WebhookTestResult) add(attempt webhook.Result) (done string, err error) {
	delivered := attempt.Outcome == webhook.Delivered
	r.Delivered, r.Status, r.Reason = &delivered, attempt.Status, attempt.Reason
	r.Millis, r.Response = attempt.Duration.Milliseconds(), string(attempt.Body)
	if delivered {
		return fmt.Sprintf("status %d", r.Status), nil
	}
	return "", fmt.Errorf("the sample was not accepted: %s; docs/operations.md has the reasons",
		entries.FailureText(r.Reason, r.Status))
}

// sampleNotification is the notification of a failed payment that does not exist: a server that takes it for a real one
// delivers nothing.
func sampleNotification(p *merchant.Profile, now time.Time) []byte {
	country, _ := market.ByAlpha2(p.DefaultCountry())
	key := ledger.Key{Kind: ledger.Payment, ID: p.Name + "_0"}
	e := &ledger.Entry{
		Key: key, Progress: ledger.Progress{Status: ledger.Failed, FinalAt: now},
		Route: ledger.Route{Operator: p.Operators[0]},
		Request: ledger.Request{
			Channel: "ussd", CountryAsSent: country.Alpha2, Reference: p.Name, State: "test",
			TransactionID: ledger.PaymentTransactionID(key.ID),
		},
		Amount: ledger.Amount{AsSent: "100", Currency: country.Currency}, CreatedAt: now,
	}
	return delivery.NotificationBody(e, ledger.Notification{Status: e.Status}, "")
}
