package deliverytest

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/webhook"
)

// webhookKey is the one key of the webhook key ring.
func webhookKey() keyring.Key {
	added := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return keyring.Key{Number: 1, Value: bytes.Repeat([]byte{9}, keyring.KeySize), AddedAt: added}
}

// WebhookKeys returns the webhook key ring.
func WebhookKeys() *keyring.RefreshingRing {
	return keyring.NewRefreshingRing(operationtest.RingSecret(webhookKey()), time.Minute, time.Now)
}

// WebhookSecret returns the text of the secret that signs a merchant's notifications.
func WebhookSecret(merchantID string, version int) string {
	return webhook.DeriveSecret(webhookKey(), merchantID, version).Text()
}

var _ delivery.Profiles = (*ProfileStore)(nil)

// ProfileStore has every merchant, each with two webhook secrets. Its reads can be made to fail.
type ProfileStore struct {
	reads   atomic.Int64
	err     error
	missing bool
}

// SetError makes every read fail; nil ends that.
func (p *ProfileStore) SetError(err error) { p.err = err }

// SetMissing makes every merchant unknown, or ends that.
func (p *ProfileStore) SetMissing(missing bool) { p.missing = missing }

// Reads returns the number of reads.
func (p *ProfileStore) Reads() int { return int(p.reads.Load()) }

// Profile implements delivery.Profiles.
func (p *ProfileStore) Profile(_ context.Context, id string) (*merchant.Profile, error) {
	p.reads.Add(1)
	if p.err != nil || p.missing {
		return nil, p.err
	}
	return &merchant.Profile{
		ID: id, Name: "DemoShop", Status: merchant.StatusActive,
		WebhookSecrets: []merchant.WebhookSecret{{Version: 2, KeyNumber: 1}, {Version: 1, KeyNumber: 1}},
	}, nil
}
