package engineers

import (
	"bytes"
	"context"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
	webhookdynamo "mobilegateway/shared/webhook/dynamo"
	model "mobilegateway/world/dynamodb"
)

// NewAddress ends the provisioned address of a merchant after its change.
const NewAddress = "/2"

// Round does what docs/operations.md says about everything that waits for a person.
func (e *Engineers) Round() {
	if !time.Now().Before(e.LastRound) {
		e.RestoreItem()
		if e.Exported != nil {
			e.start(e.export)
		}
	}
	e.Do(e.findCommands()...)
}

// export exports all days of a merchant, and counts how often each charge and payment is in it. An SMS may expire.
func (e *Engineers) export(i *deployment.Instance) {
	from, to := history.Start.Add(-24*time.Hour).Format(time.DateOnly), time.Now().Format(time.DateOnly)
	output, done := e.Run(i, "export", e.Exported.Name, "--from", from, "--to", to, "--format", "ndjson")
	if !done {
		return
	}
	for entry := range e.Entries.All() {
		if entry.Merchant.ID == e.Exported.Profile.ID && entry.Kind != ledger.SMS {
			e.observer.Exported(entry, bytes.Count(output, []byte(`"id":"`+entry.ID+`"`)))
		}
	}
}

// findCommands returns the documented commands for all that is listed, disabled, parked or dead.
func (e *Engineers) findCommands() [][]string {
	var commands [][]string
	for entry := range e.Entries.All() {
		if !e.isListed(entry) {
			continue
		}
		if as := e.operators.Truth(entry); as != "" {
			commands = append(commands, []string{"unknown", "resolve", string(entry.Kind), entry.ID, "--as", as})
		}
	}
	for _, s := range e.merchants.Shops {
		for _, address := range []string{s.NotifyURL, s.Profile.NotifURL, s.Profile.NotifURL + NewAddress} {
			if !e.IsEnabled(s.Profile.ID, address) {
				commands = append(commands, []string{"endpoint", "enable", s.Name, "--url", address})
			}
		}
	}
	for _, s := range e.merchants.Shops {
		if since := e.undeliveredSince(s); !since.IsZero() {
			commands = append(commands, []string{
				"deliveries", "replay", "--merchant", s.Name, "--from", since.Format(time.DateOnly),
				"--to", time.Now().Format(time.DateOnly), "--dead-letters",
			})
		}
	}
	return commands
}

// undeliveredSince returns the time of the earliest status of a merchant whose notification is dead or parked, zero for
// none.
func (e *Engineers) undeliveredSince(s *fixture.Shop) time.Time {
	var first time.Time
	for entry := range e.Entries.All() {
		for _, n := range entry.Outbox.Waiting {
			isWaiting := entry.Merchant.ID == s.Profile.ID && (n.DeadReason != "" || n.Parked)
			if isWaiting && (first.IsZero() || n.At.Before(first)) {
				first = n.At
			}
		}
	}
	return first
}

// IsEnabled reports whether an endpoint is enabled.
func (e *Engineers) IsEnabled(merchantID, address string) bool {
	store := webhookdynamo.New(model.NewClient(e.Database), fixture.LedgerTable, time.Now)
	health, err := store.Health(context.Background(), webhook.Endpoint{MerchantID: merchantID, URL: address})
	if err != nil {
		e.Fail("read the health of %s: %s", address, err)
	}
	return health.Enabled()
}

// isListed reports whether an entry was listed for a person lately, and its outcome is still uncertain.
func (e *Engineers) isListed(entry *ledger.Entry) bool {
	uncertain := entry.OutcomeUncertain(time.Now()) || entry.Kind == ledger.Payment && !entry.StatusFinal()
	return e.Entries.IsListed(entry) && uncertain
}
