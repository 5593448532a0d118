package relay_test

import (
	"testing"
	"time"

	"mobilegateway/functions/relay"
	"mobilegateway/shared/secret"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

// As it ships, the relay has the limits that its tests use, also for the write of a server's health.
func TestShippedLimits(t *testing.T) {
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
	want := relay.Limits{Prepare: time.Second, Send: 2 * time.Second, Store: 250 * time.Millisecond}
	if !isRelay || shipped.Limits != want || shipped.Courier.HealthTimeout != want.Store {
		t.Errorf("%+v, want the limits %+v", handler, want)
	}
}
