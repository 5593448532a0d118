package wiring

import (
	"crypto/rand"

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/reconcile"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/webhook"
	webhookdynamo "mobilegateway/shared/webhook/dynamo"
)

// ledgerStore is what the ledger's table can do for those who change entries.
type ledgerStore interface {
	ledger.Writer
	ledger.Reader
}

// Book is the ledger for those who read and change entries.
func (d *Dependencies) Book(s ledgerStore) *ledger.Book {
	return &ledger.Book{Store: s, Reader: s, Now: d.Now, Rand: rand.Reader}
}

// Reconciler asks operators for a payment's status.
func (d *Dependencies) Reconciler() *reconcile.Reconciler {
	return &reconcile.Reconciler{Operators: d.OperatorDirectory(), LookupTimeout: d.Env.Duration(settings.LookupTimeout)}
}

// Courier delivers notifications and the purchaser's SMS.
func (d *Dependencies) Courier() *delivery.Courier {
	cacheTTL := d.Env.Duration(settings.SecretCacheTTL)
	profiles := merchant.NewCachedStore(d.MerchantStore(), d.Env.Duration(settings.ProfileCacheTTL), d.Now)
	sender := webhook.NewSender(outgoing.NewClient(d.OutgoingPolicy()), d.Env.Duration(settings.WebhookTimeout), d.Now)
	return &delivery.Courier{
		Profiles:   profiles,
		Keys:       keyring.NewRefreshingRing(d.secretCache(settings.WebhookKeySecret), cacheTTL, d.Now),
		Health:     webhookdynamo.New(d.aws.DynamoDB(), d.Env.Required(settings.LedgerTable), d.Now),
		Sender:     sender,
		Schedule:   webhook.Schedule(d.Env.Durations(settings.DeliverySchedule)),
		Operators:  d.OperatorDirectory(),
		SMSTimeout: d.Env.Duration(settings.OperatorTimeout),
		// The purchaser's SMS is tried again as often as a pending payment is looked up, once through.
		SMSRetryDelays: d.Env.Durations(settings.PollSchedule),
		Now:            d.Now,
		Rand:           rand.Reader,
	}
}
