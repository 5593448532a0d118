package gatewayctl

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/webhook"
)

type webhookCommands struct {
	Test webhookTest `cmd:"" help:"Post a signed sample to a merchant's address, and show the response."`
}

type webhookTest struct {
	Merchant string `required:"" placeholder:"NAME" help:"The merchant's name or id."`
	urlFlag
	Timeout time.Duration `variable:"WEBHOOK_TIMEOUT" default:"15s" help:"The longest wait for a response."`
	loopbackFlag
}

// maxResponseText is how much of a response's body is shown.
const maxResponseText = 2 << 10

// webhookTestResult is the sample and the response to it.
type webhookTestResult struct {
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

// Run posts the sample with --yes. It does not belong to a transaction: nothing is stored, and neither a 410 nor a
// failure counts for the endpoint.
func (c *webhookTest) Run(s *session) error {
	p, err := s.findMerchant(c.Merchant)
	if err != nil {
		return err
	}
	address, err := c.address(p, nil)
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
	result := webhookTestResult{
		URL: address, WebhookID: request.ID, Sample: string(request.Body),
		Versions: mapAll(p.WebhookSecrets, func(w merchant.WebhookSecret) int { return w.Version }),
	}
	err = s.execute("test a webhook", p.Name+" "+address, func() (string, error) {
		if !s.Yes {
			return "a signed sample would be posted", nil
		}
		sender := webhook.NewSender(outgoing.NewClient(policy, nil), c.Timeout, s.Now)
		return result.add(sender.Deliver(s, request))
	})
	return errors.Join(err, s.showView(result))
}

// add adds the response, and describes it.
func (r *webhookTestResult) add(attempt webhook.Result) (done string, err error) {
	delivered := attempt.Outcome == webhook.Delivered
	r.Delivered, r.Status, r.Reason = &delivered, attempt.Status, attempt.Reason
	r.Millis, r.Response = attempt.Duration.Milliseconds(), string(attempt.Body)
	if delivered {
		return fmt.Sprintf("status %d", r.Status), nil
	}
	return "", fmt.Errorf("the sample was not accepted: %s; docs/operations.md has the reasons",
		failureText(r.Reason, r.Status))
}

// signingSecrets derives the secrets that sign a merchant's notifications, newest first.
func signingSecrets(s *session, p *merchant.Profile) (secrets []webhook.Secret, err error) {
	ring, err := readWebhookRing(s)
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

// findWebhookKey returns the key from which a secret is derived.
func findWebhookKey(ring *keyring.Ring, w merchant.WebhookSecret) (keyring.Key, error) {
	key, found := ring.FindKey(w.KeyNumber)
	if !found {
		return key, fmt.Errorf("the webhook key ring has no key %d: run webhook-secret rotate", w.KeyNumber)
	}
	return key, nil
}

// sampleNotification is the notification of a failed payment that does not exist: a server that takes it for a real one
// delivers nothing.
func sampleNotification(p *merchant.Profile, now time.Time) []byte {
	country, _ := market.ByAlpha2(p.DefaultCountry())
	key := ledger.Key{Kind: ledger.Payment, ID: p.Name + "_0"}
	e := &ledger.Entry{
		Key: key, Status: ledger.Failed, Operator: p.Operators[0], Channel: "ussd", AmountAsSent: "100",
		Currency: country.Currency, CountryAsSent: country.Alpha2, MerchantReference: p.Name, MerchantState: "test",
		TransactionID: ledger.PaymentTransactionID(key.ID), CreatedAt: now, FinalAt: now,
	}
	return delivery.NotificationBody(e, ledger.Notification{Status: e.Status}, "")
}
