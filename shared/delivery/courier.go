// Package delivery takes what stands in an entry's outbox to the merchant, and the purchaser's SMS to the operator. The
// relay and the sweep deliver through it alike.
//
// It claims nothing and writes no entry: it makes an attempt and says how the entry is to be changed. Its invariant: an
// attempt is signed, goes to the address pinned in the entry, and always bears the notification's own id.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/telemetry"
	"mobilegateway/shared/webhook"
)

const (
	// noteTimeout bounds the storing of an endpoint's health after an attempt, which may have used up its own time.
	noteTimeout = time.Second
	// noteTries bounds how often health is read anew because another attempt's was stored first.
	noteTries = 8
)

// Profiles reads merchants' profiles; *merchant.Cached is the one that ships.
type Profiles interface {
	Profile(ctx context.Context, id string) (*merchant.Profile, error)
}

// Courier delivers.
type Courier struct {
	Profiles Profiles
	Keys     *keyring.Keys
	Health   webhook.HealthStore
	Sender   *webhook.Sender
	Schedule webhook.Schedule
	// Operators send the purchaser's SMS; SMSTimeout bounds one, SMSSchedule is the wait before each further try.
	Operators   *operator.Directory
	SMSTimeout  time.Duration
	SMSSchedule []time.Duration
	Now         func() time.Time
	Rand        io.Reader
}

// Change is what an attempt does to its entry. It says whether it changed anything: not where another hand was faster.
type Change func(*ledger.Entry) bool

// Endpoint is where an entry's notifications go, with what an attempt needs. Of a disabled one only its health is known.
type Endpoint struct {
	webhook.Health
	secrets []webhook.Secret
}

// errNoProfile says that a transaction's merchant is not in the table.
var errNoProfile = errors.New("delivery: the merchant is not known")

// Endpoint finds the address that an entry's notifications go to. Whatever an attempt needs is fetched here, so that no
// attempt is claimed that cannot be made. An error means that nothing is known, and nothing may be sent.
func (c *Courier) Endpoint(ctx context.Context, e *ledger.Entry) (Endpoint, error) {
	health, err := c.Health.Health(ctx, webhook.Endpoint{MerchantID: e.MerchantID, URL: e.NotifyURL})
	if err != nil || !health.Enabled() {
		return Endpoint{Health: health}, err
	}
	secrets, err := c.secrets(ctx, e.MerchantID)
	return Endpoint{Health: health, secrets: secrets}, err
}

// Post makes one attempt on a notification and returns how the entry changes by it. made is the number of this attempt,
// from 1.
func (c *Courier) Post(ctx context.Context, e *ledger.Entry, n ledger.Notification, made int, to Endpoint, line *telemetry.Event) Change {
	result := c.Sender.Deliver(ctx, webhook.Request{URL: e.NotifyURL, ID: n.ID, Body: Body(e, n), Secrets: to.secrets})
	line.AddUpstream(result.Took)
	now := ledger.Moment(c.Now())
	err := c.note(ctx, to.Health, result, now)
	if err != nil {
		line.SetCause(err)
	}
	if result.Outcome == webhook.Gone && err == nil {
		line.Count(telemetry.DeliveryFailures)
		line.Count(telemetry.EndpointsDisabled)
		return func(e *ledger.Entry) bool {
			return e.FailedAttempt(n.ID, failed(made, result, now), now) && e.Park()
		}
	}
	return c.outcome(n, made, result, now, line)
}

// outcome is the change that an attempt's result makes. A 410 that could not be stored with its endpoint is a failure
// like others: a parked notification of an enabled endpoint would never be queued again.
func (c *Courier) outcome(n ledger.Notification, made int, result webhook.Result, now time.Time, line *telemetry.Event) Change {
	if result.Outcome == webhook.Delivered {
		line.Count(telemetry.Delivered)
		return func(e *ledger.Entry) bool { return e.Delivered(n.ID, now) }
	}
	line.Count(telemetry.DeliveryFailures)
	next, more := c.Schedule.Next(made, now, result.RetryAfter, c.Rand)
	if more {
		return func(e *ledger.Entry) bool { return e.FailedAttempt(n.ID, failed(made, result, now), next) }
	}
	line.Count(telemetry.DeadLetters)
	return func(e *ledger.Entry) bool {
		return e.FailedAttempt(n.ID, failed(made, result, now), now) && e.DeadLetter(n.ID, result.Why)
	}
}

// failed is an attempt as the entry remembers it.
func failed(made int, result webhook.Result, now time.Time) ledger.Attempt {
	return ledger.Attempt{Number: made, At: now, Code: result.Status, Why: result.Why}
}

// errHealthContended says that other attempts' health was stored first every time.
var errHealthContended = errors.New("delivery: too many attempts at once to store the endpoint's health")

// note stores what an attempt's result means for its server, or a 410 for its URL. Where another attempt was faster the result is applied to
// what that one stored: of failures side by side each counts, and a 410 is never lost.
func (c *Courier) note(ctx context.Context, health webhook.Health, result webhook.Result, now time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	for range noteTries {
		change, save := health.After, c.Health.SaveHealth
		if result.Outcome == webhook.Gone {
			change, save = health.Disable, c.Health.SaveDisabled
		}
		next, changed := change(result, now)
		if !changed {
			return nil
		}
		saved, err := save(ctx, next)
		if err != nil || saved {
			return err
		}
		health, err = c.Health.Health(ctx, health.Endpoint)
		if err != nil {
			return err
		}
	}
	return errHealthContended
}

// secrets derives the merchant's signing secrets, newest first.
func (c *Courier) secrets(ctx context.Context, merchantID string) ([]webhook.Secret, error) {
	profile, err := c.Profiles.Profile(ctx, merchantID)
	if err != nil {
		return nil, fmt.Errorf("delivery: read the merchant: %w", err)
	}
	if profile == nil {
		return nil, errNoProfile
	}
	var secrets []webhook.Secret
	for _, named := range profile.WebhookSecrets {
		key, found, err := c.Keys.Find(ctx, named.KeyNumber)
		if err != nil {
			return nil, fmt.Errorf("delivery: read webhook key %d: %w", named.KeyNumber, err)
		}
		if !found {
			return nil, fmt.Errorf("delivery: webhook key %d is not in the ring", named.KeyNumber)
		}
		secrets = append(secrets, webhook.DeriveSecret(key, merchantID, named.Version))
	}
	return secrets, nil
}
