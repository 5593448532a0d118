package deliverytest

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"sync/atomic"

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/secret"
	"mobilegateway/shared/webhook"
)

// webhookSecret is the secret of the webhook key ring, which has one key.
type webhookSecret struct{}

func webhookKey() keyring.Key {
	return keyring.Key{Number: 1, Value: bytes.Repeat([]byte{9}, keyring.KeySize)}
}

// Get implements keyring.SecretSource.
func (webhookSecret) Get(context.Context) (secret.Value, error) {
	const format = `{"keys":[{"number":1,"key":%q,"added":"2026-01-01T00:00:00Z"}]}`
	key := base64.StdEncoding.EncodeToString(webhookKey().Value)
	return secret.Value{Bytes: fmt.Appendf(nil, format, key)}, nil
}

// Refresh implements keyring.SecretSource.
func (r webhookSecret) Refresh(ctx context.Context) (secret.Value, error) { return r.Get(ctx) }

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
