package deliverytest

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"mobilegateway/proof/kits/operationtest"
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
func WebhookKeys(now func() time.Time) *keyring.RefreshingRing {
	return keyring.NewRefreshingRing(operationtest.RingSecret(webhookKey()), time.Minute, now)
}

// WebhookSecret returns the text of the secret that signs a merchant's notifications.
func WebhookSecret(merchantID string, version int) string {
	return webhook.DeriveSecret(webhookKey(), merchantID, version).Text()
}

var _ delivery.Profiles = (*ProfileStore)(nil)

// ProfileStore has every merchant, each with two webhook secrets. Set Err and Missing between invocations.
type ProfileStore struct {
	Reads   atomic.Int64 // their number so far
	Err     error        // if set, every read fails
	Missing bool         // if true, every merchant is unknown
	// NotifURL is the notif_url of every merchant, and Hosts are its registered hosts.
	NotifURL string
	Hosts    []string
}

// Profile implements delivery.Profiles.
func (p *ProfileStore) Profile(_ context.Context, id string) (*merchant.Profile, error) {
	p.Reads.Add(1)
	if p.Err != nil || p.Missing {
		return nil, p.Err
	}
	return &merchant.Profile{
		ID: id, Name: "DemoShop", Status: merchant.StatusActive,
		Notifications: merchant.Notifications{NotifURL: p.NotifURL, NotificationHosts: p.Hosts},
		Credentials: merchant.Credentials{
			WebhookSecrets: []merchant.WebhookSecret{{Version: 2, KeyNumber: 1}, {Version: 1, KeyNumber: 1}},
		},
	}, nil
}
