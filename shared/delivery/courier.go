// Package delivery makes delivery attempts for the relay and the sweep: it posts an entry's notification to the
// merchant, and sends the payer's SMS through the operator.
//
// An attempt neither leases nor writes an entry: it returns the change, which Store stores. Its invariant: each attempt
// is signed, goes to the URL that the request named or to the profile's present one, and carries the notification's own
// id.
package delivery

import (
	"cmp"
	"context"
	"io"
	"time"

	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/telemetry"
	"mobilegateway/shared/webhook"
)

const (
	// saveHealthTimeout bounds the write of an endpoint's health, unless the courier has another bound. The attempt
	// before it may have used up its own time.
	saveHealthTimeout = time.Second
	// maxSaveHealthAttempts bounds how often health is read again because a concurrent write came first.
	maxSaveHealthAttempts = 8
)

// Profiles reads merchants' profiles; *merchant.CachedStore implements it.
type Profiles interface {
	Profile(ctx context.Context, id string) (*merchant.Profile, error)
}

// Courier makes delivery attempts. It is safe for concurrent use.
type Courier struct {
	Profiles Profiles
	Keys     *keyring.RefreshingRing
	Health   webhook.HealthStore
	Sender   *webhook.Sender
	Schedule webhook.Schedule
	// HealthTimeout bounds the write of an endpoint's health after an attempt; 0 means a second.
	HealthTimeout time.Duration
	// Operators send the payer's SMS. SMSTimeout bounds one attempt; SMSRetryDelays has the wait before each retry.
	Operators      *operator.DriverDirectory
	SMSTimeout     time.Duration
	SMSRetryDelays []time.Duration
	// BaseURL is the public address of the API, in the notification of a charge.
	BaseURL string
	// AllowLoopback accepts a notif_url on this machine; only in the local run.
	AllowLoopback bool
	Now           func() time.Time
	Rand          io.Reader
}

// EntryChange applies the result of an attempt to an entry. It returns NoTransition if it changed nothing because
// another writer came first.
type EntryChange func(*ledger.Entry) ledger.Transition

// Target is an entry's endpoint with the secrets that sign its notifications. A disabled endpoint has no secrets.
type Target struct {
	webhook.Health
	secrets []webhook.Secret
}

var (
	errMerchantNotFound = logsafe.New("delivery: the entry's merchant is not in the merchant table")
	errHealthContended  = logsafe.New("delivery: save the endpoint's health: too many concurrent writes")
)

// FindTarget reads everything that an attempt at the entry's notifications needs, so that the caller leases only
// attempts that can be made. After an error nothing may be sent.
func (c *Courier) FindTarget(ctx context.Context, e *ledger.Entry) (Target, error) {
	health, err := c.readHealth(ctx, e)
	if err != nil || !health.Enabled() {
		return Target{Health: health}, err
	}
	secrets, err := c.signingSecrets(ctx, e.Merchant.ID)
	return Target{Health: health, secrets: secrets}, err
}

// EndpointEnabled reports whether the endpoint of an entry's notifications is enabled.
func (c *Courier) EndpointEnabled(ctx context.Context, e *ledger.Entry) (bool, error) {
	health, err := c.readHealth(ctx, e)
	return err == nil && health.Enabled(), err
}

// Attempt is one delivery attempt: the notification that its caller leased, and where it is posted. It is not posted
// after NotAfter, unless that is zero.
type Attempt struct {
	ledger.DeliveryClaim
	Target
	NotAfter time.Time
}

// PostNotification makes one delivery attempt and returns the change of its entry. The change is nil without an
// attempt, because NotAfter has passed, and without an outcome, because ctx ended by webhook.ErrCutOff. Then no attempt
// is spent, and the server is slow. A 410 whose endpoint could not be stored as disabled counts as any other failure:
// the endpoint is still enabled.
func (c *Courier) PostNotification(
	ctx context.Context, e *ledger.Entry, attempt Attempt, line *telemetry.LogLine,
) EntryChange {
	claim, target := attempt.DeliveryClaim, attempt.Target
	n := claim.Notification
	result := c.Sender.Deliver(ctx, webhook.Request{
		URL: target.URL, ID: n.ID, Body: NotificationBody(e, n, c.BaseURL), Secrets: target.secrets,
		NotAfter: attempt.NotAfter,
	})
	line.AddOperatorTime(result.Duration)
	if result.Outcome == webhook.NotSent {
		return nil
	}
	now := ledger.Timestamp(c.Now())
	healthErr := c.saveHealth(ctx, target.Health, result, now)
	if healthErr != nil {
		line.SetCause(healthErr)
	}
	if result.Outcome == webhook.CutOff {
		return nil
	}
	if result.Outcome == webhook.Delivered {
		line.Increment(telemetry.DeliveredNotifications)
		return func(e *ledger.Entry) ledger.Transition {
			return ledger.MarkDelivered.If(e.Outbox.MarkDelivered(n.ID, now))
		}
	}
	line.Increment(telemetry.DeliveryAttemptFailures)
	failed := ledger.FailedAttempt{At: now, HTTPStatus: result.Status, Reason: result.Reason}
	next, attemptsLeft := c.Schedule.NextAttempt(claim.Attempts+1, now, result.RetryAfter, c.Rand)
	switch {
	case result.Outcome == webhook.Gone && healthErr == nil:
		line.Increment(telemetry.EndpointsDisabled)
		return func(e *ledger.Entry) ledger.Transition {
			return ledger.Park.If(e.Outbox.RecordFailedAttempt(claim, failed, now) && e.Outbox.Park(now))
		}
	case attemptsLeft:
		return func(e *ledger.Entry) ledger.Transition {
			return ledger.RecordFailedAttempt.If(e.Outbox.RecordFailedAttempt(claim, failed, next))
		}
	default:
		line.Increment(telemetry.DeadLetters)
		return func(e *ledger.Entry) ledger.Transition {
			return ledger.DeadLetter.If(e.Outbox.RecordFailedAttempt(claim, failed, now) &&
				e.Outbox.DeadLetter(n.ID, failed.Reason, now))
		}
	}
}

// saveHealth stores the result in the health of its server, or a 410 in that of its URL. If a concurrent write came
// first, it applies the result to the health that this write stored: concurrent failures each count, and no 410 is
// lost.
func (c *Courier) saveHealth(
	ctx context.Context, health webhook.Health, result webhook.Result, now time.Time,
) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(c.HealthTimeout, saveHealthTimeout))
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
	profile, err := c.readProfile(ctx, merchantID)
	if err != nil {
		return nil, err
	}
	var secrets []webhook.Secret
	for _, named := range profile.WebhookSecrets {
		key, found, err := c.Keys.FindKey(ctx, named.KeyNumber)
		if err != nil {
			return nil, logsafe.Errorf("delivery: read webhook key %d: %w", named.KeyNumber, err)
		}
		if !found {
			return nil, logsafe.Errorf("delivery: webhook key %d is not in the key ring", named.KeyNumber)
		}
		secrets = append(secrets, webhook.DeriveSecret(key, merchantID, named.Version))
	}
	return secrets, nil
}
