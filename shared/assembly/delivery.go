package assembly

import (
	"crypto/rand"

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/settlement"
	"mobilegateway/shared/webhook"
	webhookdynamo "mobilegateway/shared/webhook/dynamo"
)

// store is what the ledger's table can do for those who change entries.
type store interface {
	ledger.Writer
	ledger.Reader
}

// Book is the ledger for those who read and change entries.
func (p *Parts) Book(s store) *ledger.Book {
	return &ledger.Book{Store: s, Reader: s, Now: p.Now, Rand: rand.Reader}
}

// Settlement asks operators for a payment's status.
func (p *Parts) Settlement() *settlement.Desk {
	return &settlement.Desk{Operators: p.Operators(), Amounts: p.Amounts(), Timeout: p.Env.Duration(settings.LookupTimeout)}
}

// Courier delivers notifications and the purchaser's SMS.
func (p *Parts) Courier() *delivery.Courier {
	life := p.Env.Duration(settings.SecretCache)
	profiles := merchant.NewCached(p.Merchants(), p.Env.Duration(settings.ProfileCache), p.Now)
	sender := webhook.NewSender(outgoing.Client(p.Outgoing()), p.Env.Duration(settings.WebhookTimeout), p.Now)
	return &delivery.Courier{
		Profiles:   profiles,
		Keys:       keyring.New(p.secret(settings.WebhookKeySecret), life, p.Now),
		Health:     webhookdynamo.New(p.aws.DynamoDB(), p.Env.Required(settings.LedgerTable), p.Now),
		Sender:     sender,
		Schedule:   webhook.Schedule(p.Env.Durations(settings.DeliverySchedule)),
		Operators:  p.Operators(),
		SMSTimeout: p.Env.Duration(settings.OperatorTimeout),
		// The purchaser's SMS is tried again as often as a pending payment is looked up, once through.
		SMSSchedule: p.Env.Durations(settings.PollSchedule),
		Now:         p.Now,
		Rand:        rand.Reader,
	}
}
