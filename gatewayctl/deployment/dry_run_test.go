package deployment_test

import (
	"context"
	"strings"
	"testing"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/webhook"
)

// racingSecrets is a SecretStore in which another person changes a secret after each read.
type racingSecrets struct{ *gatewayctltest.Secrets }

func (r racingSecrets) Get(ctx context.Context, name string) (deployment.StoredSecret, error) {
	current, err := r.Secrets.Get(ctx, name)
	r.Revisions[name]++
	return current, err
}

// racingHealth is a HealthStore in which another person changes an endpoint after each read.
type racingHealth struct {
	*storetest.EndpointHealth
}

func (r racingHealth) Health(ctx context.Context, at webhook.Endpoint) (webhook.Health, error) {
	h, err := r.EndpointHealth.Health(ctx, at)
	changed := h
	changed.DisabledVersion++
	r.StoreHealth(changed)
	return h, err
}

// TestDryRunFindsConcurrentChange: a dry run reports the refusal that the real run reports, and changes nothing.
func TestDryRunFindsConcurrentChange(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	at := webhook.Endpoint{MerchantID: shop.ID, URL: shop.NotifURL}
	d.Health.StoreHealth(webhook.Health{Endpoint: at, DisabledAt: d.Now, DisabledVersion: 1})
	d.ChangeStores(func(s *deployment.Stores) {
		s.Secrets, s.EndpointHealth = racingSecrets{d.Vault}, racingHealth{d.Health}
	})
	puts := d.Vault.Puts
	d.ExpectBoth("keys add tokens", gatewayctl.ExitFailed, "was changed meanwhile")
	d.ExpectBoth("endpoint enable ShopA", gatewayctl.ExitFailed, "was changed meanwhile")
	d.Equal("secrets stored by a refused change", d.Vault.Puts-puts, 0)
	d.Equal("endpoint is enabled by a refused change", d.Health.Stored(at).Enabled(), false)
}

// TestDryRunWithoutSecret: a dry run refuses a secret that the deployment does not have.
func TestDryRunWithoutSecret(t *testing.T) {
	d, _, _ := gatewayctltest.NewOnLocalAWS(t)
	d.ExpectBoth("keys add tokens --token-key-secret none", gatewayctl.ExitFailed, "there is no secret none")
}

func TestConcurrentSecretChangeIsRefused(t *testing.T) {
	d, _, _ := gatewayctltest.NewOnLocalAWS(t)
	stores, err := deployment.Connect(deployment.System{Getenv: func(name string) string { return d.Variables[name] }},
		deployment.Names{LedgerTable: "ledger", MerchantTable: "merchants"})
	if err != nil {
		t.Fatal(err)
	}
	store, dryRun := stores.Secrets, stores.ReadOnly().Secrets
	d.Apply("keys add tokens")
	current, err := store.Get(t.Context(), "token-keys")
	if err != nil {
		t.Fatal(err)
	}
	if err := dryRun.Put(t.Context(), current, []byte("mine")); err != nil {
		t.Errorf("dry run of Put to an unchanged secret: %v", err)
	}
	d.Apply("keys add tokens")
	for what, err := range map[string]error{
		"Put":            store.Put(t.Context(), current, []byte("mine")),
		"dry run of Put": dryRun.Put(t.Context(), current, []byte("mine")),
	} {
		if err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
			t.Errorf("%s over a concurrent change: %v", what, err)
		}
	}
}
