package gatewayctl

import (
	"context"
	"testing"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/webhook"
)

// racingSecrets is a SecretStore in which another person changes a secret after each read.
type racingSecrets struct{ *memorySecretStore }

func (r racingSecrets) Get(ctx context.Context, name string) (StoredSecret, error) {
	current, err := r.memorySecretStore.Get(ctx, name)
	r.revisions[name]++
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
	d, shop := newShopTool(t)
	at := webhook.Endpoint{MerchantID: shop.ID, URL: shop.NotifURL}
	d.health.StoreHealth(webhook.Health{Endpoint: at, DisabledAt: d.now, DisabledVersion: 1})
	d.changeStores(func(s *Stores) {
		s.Secrets, s.EndpointHealth = racingSecrets{d.vault}, racingHealth{d.health}
	})
	puts := d.vault.puts
	d.expectBoth("keys add tokens", ExitFailed, "was changed meanwhile")
	d.expectBoth("endpoint enable ShopA", ExitFailed, "was changed meanwhile")
	checkEqual(t, "secrets stored by a refused change", d.vault.puts-puts, 0)
	checkEqual(t, "endpoint is enabled by a refused change", d.health.Stored(at).Enabled(), false)
}

// TestDryRunWithoutSecret: a dry run refuses a secret that the deployment does not have.
func TestDryRunWithoutSecret(t *testing.T) {
	d, _, _ := newLocalAWSTool(t)
	d.expectBoth("keys add tokens --token-key-secret none", ExitFailed, "there is no secret none")
}
