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
	// saveHealthTimeout bounds the storing of an endpoint's health after an attempt, which may have used up its own time.
	saveHealthTimeout = time.Second
	// maxSaveHealthAttempts bounds how often health is read anew because another attempt's was stored first.
	maxSaveHealthAttempts = 8
)

// Profiles reads merchants' profiles; *merchant.Cached is the one that ships.
type Profiles interface {
	Profile(ctx context.Context, id string) (*merchant.Profile, error)
}

// Courier delivers.
type Courier struct {
	Profiles Profiles
	Keys     *keyring.RefreshingRing
	Health   webhook.HealthStore
	Sender   *webhook.Sender
	Schedule webhook.Schedule
	// Operators send the purchaser's SMS; SMSTimeout bounds one, SMSSchedule is the wait before each further try.
	Operators      *operator.DriverDirectory
	SMSTimeout     time.Duration
	SMSRetryDelays []time.Duration
	Now            func() time.Time
	Rand           io.Reader
}

// EntryChange is what an attempt does to its entry. It says whether it changed anything: not where another hand was faster.
type EntryChange func(*ledger.Entry) bool

// Target is where an entry's notifications go, with what an attempt needs. Of a disabled one only its health is known.
type Target struct {
	webhook.Health
	secrets []webhook.Secret
}

// errMerchantNotFound says that a transaction's merchant is not in the table.
var errMerchantNotFound = errors.New("delivery: the merchant is not known")

// FindTarget finds the address that an entry's notifications go to. Whatever an attempt needs is fetched here, so that no
// attempt is claimed that cannot be made. An error means that nothing is known, and nothing may be sent.
func (c *Courier) FindTarget(ctx context.Context, e *ledger.Entry) (Target, error) {
	health, err := c.Health.Health(ctx, webhook.Endpoint{MerchantID: e.MerchantID, URL: e.NotifyURL})
	if err != nil || !health.Enabled() {
		return Target{Health: health}, err
	}
	secrets, err := c.signingSecrets(ctx, e.MerchantID)
	return Target{Health: health, secrets: secrets}, err
}

// PostNotification makes one attempt on a notification and returns how the entry changes by it. made is the number of this attempt,
// from 1.
func (c *Courier) PostNotification(ctx context.Context, e *ledger.Entry, n ledger.Notification, attemptNumber int, target Target, line *telemetry.LogLine) EntryChange {
	result := c.Sender.Deliver(ctx, webhook.Request{URL: e.NotifyURL, ID: n.ID, Body: NotificationBody(e, n), Secrets: target.secrets})
	line.AddOperatorTime(result.Duration)
	now := ledger.Timestamp(c.Now())
	err := c.saveHealth(ctx, target.Health, result, now)
	if err != nil {
		line.SetCause(err)
	}
	if result.Outcome == webhook.Gone && err == nil {
		line.Increment(telemetry.DeliveryAttemptFailures)
		line.Increment(telemetry.EndpointsDisabled)
		return func(e *ledger.Entry) bool {
			return e.RecordFailedAttempt(n.ID, failedAttempt(attemptNumber, result, now), now) && e.Park()
		}
	}
	return c.resultChange(n, attemptNumber, result, now, line)
}

// resultChange is the change that an attempt's result makes. A 410 that could not be stored with its endpoint is a failure
// like others: a parked notification of an enabled endpoint would never be queued again.
func (c *Courier) resultChange(n ledger.Notification, attemptNumber int, result webhook.Result, now time.Time, line *telemetry.LogLine) EntryChange {
	if result.Outcome == webhook.Delivered {
		line.Increment(telemetry.DeliveredNotifications)
		return func(e *ledger.Entry) bool { return e.MarkDelivered(n.ID, now) }
	}
	line.Increment(telemetry.DeliveryAttemptFailures)
	next, retriesLeft := c.Schedule.NextAttempt(attemptNumber, now, result.RetryAfter, c.Rand)
	if retriesLeft {
		return func(e *ledger.Entry) bool {
			return e.RecordFailedAttempt(n.ID, failedAttempt(attemptNumber, result, now), next)
		}
	}
	line.Increment(telemetry.DeadLetters)
	return func(e *ledger.Entry) bool {
		return e.RecordFailedAttempt(n.ID, failedAttempt(attemptNumber, result, now), now) && e.DeadLetter(n.ID, result.Reason)
	}
}

// failedAttempt is an attempt as the entry remembers it.
func failedAttempt(attemptNumber int, result webhook.Result, now time.Time) ledger.FailedAttempt {
	return ledger.FailedAttempt{Number: attemptNumber, At: now, HTTPStatus: result.Status, Reason: result.Reason}
}

// errHealthContended says that other attempts' health was stored first every time.
var errHealthContended = errors.New("delivery: too many attempts at once to store the endpoint's health")

// saveHealth stores what an attempt's result means for its server, or a 410 for its URL. Where another attempt was faster the result is applied to
// what that one stored: of failures side by side each counts, and a 410 is never lost.
func (c *Courier) saveHealth(ctx context.Context, health webhook.Health, result webhook.Result, now time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveHealthTimeout)
	defer cancel()
	for range maxSaveHealthAttempts {
		change, save := health.AfterAttempt, c.Health.SaveHealth
		if result.Outcome == webhook.Gone {
			change, save = health.AfterDisable, c.Health.SaveDisabled
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

// signingSecrets derives the merchant's signing secrets, newest first.
func (c *Courier) signingSecrets(ctx context.Context, merchantID string) ([]webhook.Secret, error) {
	profile, err := c.Profiles.Profile(ctx, merchantID)
	if err != nil {
		return nil, fmt.Errorf("delivery: read the merchant: %w", err)
	}
	if profile == nil {
		return nil, errMerchantNotFound
	}
	var secrets []webhook.Secret
	for _, named := range profile.WebhookSecrets {
		key, found, err := c.Keys.FindKey(ctx, named.KeyNumber)
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
