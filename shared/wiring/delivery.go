package wiring

import (
	"mobilegateway/shared/confirm"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/webhook"
	webhookdynamo "mobilegateway/shared/webhook/dynamo"
)

// Book returns the ledger for functions that read and change entries.
func (d *Dependencies) Book(s *dynamo.Store) *ledger.Book {
	return &ledger.Book{Store: s, Reader: s, Now: d.Now, Rand: d.Rand}
}

// Confirmer returns the part that confirms the status of payments.
func (d *Dependencies) Confirmer() *confirm.Confirmer {
	return &confirm.Confirmer{
		Operators: d.OperatorDirectory(), LookupTimeout: d.Env.Duration(settings.LookupTimeout),
		LookupRates: d.RateLimiter(), DailyAmounts: d.DailyAmounts(),
	}
}

// Courier returns the part that delivers notifications and the payer's SMS.
func (d *Dependencies) Courier() *delivery.Courier {
	health := webhookdynamo.New(d.DynamoDB(), d.Env.Required(settings.LedgerTable), d.Now)
	health.Start = d.Start
	profiles := merchant.NewCachedStore(d.MerchantStore(), d.Env.Duration(settings.ProfileCacheTTL), d.Now)
	client := outgoing.NewClient(d.OutgoingPolicy(), d.MerchantTransport)
	sender := webhook.NewSender(client, d.Env.Duration(settings.WebhookTimeout), d.Now)
	return &delivery.Courier{
		Profiles:   profiles,
		Keys:       d.KeyRing(settings.WebhookKeySecret),
		Health:     health,
		Sender:     sender,
		Schedule:   webhook.Schedule(d.Env.Durations(settings.DeliverySchedule)),
		Operators:  d.OperatorDirectory(),
		SMSTimeout: d.Env.Duration(settings.OperatorTimeout),
		// Retries of the payer's SMS follow the poll schedule once, to its end.
		SMSRetryDelays: d.Env.Durations(settings.PollSchedule),
		BaseURL:        d.BaseURL(),
		AllowLoopback:  d.OutgoingPolicy().AllowLoopback,
		Now:            d.Now,
		Rand:           d.Rand,
	}
}
