package relay_test

import (
	"testing"
	"time"

	"mobilegateway/functions/relay"
	"mobilegateway/shared/secret"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

// As it ships, the relay waits 2 seconds for the payer's SMS and 2.5 for a batch: each wait delays the next batch.
func TestShippedWaits(t *testing.T) {
	environment := map[string]string{
		settings.StackName: stack, settings.LedgerTable: "ledger", settings.MerchantTable: "merchants",
		settings.OperatorCredentialsSecret: "operators", settings.WebhookKeySecret: "webhooks",
		settings.WarmConnections: "false",
	}
	outside := wiring.Outside{
		DynamoDB:     func() wiring.DynamoDB { return nil },
		SecretSource: func() secret.Source { return nil },
		Now:          time.Now,
	}
	handler, err := relay.New(wiring.NewDependencies(outside, func(name string) string { return environment[name] }))
	if err != nil {
		t.Fatal(err)
	}
	shipped, isRelay := handler.(*relay.Relay)
	if !isRelay || shipped.MaxBatchWait != 2500*time.Millisecond || shipped.Courier.SMSTimeout != 2*time.Second {
		t.Errorf("%+v, want 2.5 s for a batch and 2 s for an SMS", handler)
	}
}
