package delivery

import (
	"context"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/webhook"
)

// NotificationURL returns the address of an entry's notifications: the one that its request named, or the profile's
// present notif_url. Without one in the profile it is the former one (decision "notification-address").
func NotificationURL(e *ledger.Entry, p *merchant.Profile) string {
	if e.Outbox.From == ledger.AddressOfProfile && p.NotifURL != "" {
		return p.NotifURL
	}
	return e.Outbox.URL
}

// CheckNotificationURL applies to an entry's address the checks that its request applied: it must be on a registered
// host, unless it is an SMS's and the profile opens it. allowLoopback is true only in the local run.
func CheckNotificationURL(address string, e *ledger.Entry, p *merchant.Profile, allowLoopback bool) error {
	policy := p.NotificationPolicy(allowLoopback)
	if e.Kind == ledger.SMS {
		policy = p.SMSNotificationPolicy(allowLoopback)
	}
	return outgoing.CheckNotificationURL(address, policy)
}

// readHealth reads the health of the endpoint of an entry's notifications. An address that followed the profile since
// the request is checked; the others were checked by their request.
func (c *Courier) readHealth(ctx context.Context, e *ledger.Entry) (webhook.Health, error) {
	address := e.Outbox.URL
	if e.Outbox.From == ledger.AddressOfProfile {
		profile, err := c.readProfile(ctx, e.Merchant.ID)
		if err != nil {
			return webhook.Health{}, err
		}
		if address = NotificationURL(e, profile); address != e.Outbox.URL {
			if err := CheckNotificationURL(address, e, profile, c.AllowLoopback); err != nil {
				return webhook.Health{}, logsafe.Errorf("delivery: the profile's notif_url: %w", err)
			}
		}
	}
	return c.Health.Health(ctx, webhook.Endpoint{MerchantID: e.Merchant.ID, URL: address})
}

// readProfile reads the profile of an entry's merchant, which must exist.
func (c *Courier) readProfile(ctx context.Context, merchantID string) (*merchant.Profile, error) {
	profile, err := c.Profiles.Profile(ctx, merchantID)
	if err != nil {
		return nil, logsafe.Errorf("delivery: read the merchant's profile: %w", err)
	}
	if profile == nil {
		return nil, errMerchantNotFound
	}
	return profile, nil
}
