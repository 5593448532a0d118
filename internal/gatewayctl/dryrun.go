package gatewayctl

import (
	"context"

	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/webhook"
)

// readOnly returns the stores of a dry run. Each write that a command makes returns the refusal that the real write
// would return, and stores nothing. A dry run writes no audit record.
func (s Stores) readOnly() *Stores {
	s.Merchants, s.Ledger = readOnlyMerchants{s.Merchants}, readOnlyLedger{s.Ledger}
	s.EndpointHealth, s.Secrets = readOnlyHealth{s.EndpointHealth}, readOnlySecrets{s.Secrets}
	if s.DailyAmounts != nil {
		amounts := *s.DailyAmounts
		amounts.Store = readOnlyAmounts{}
		s.DailyAmounts = &amounts
	}
	return &s
}

type readOnlyMerchants struct{ merchant.Registry }

// Create checks that the name is free.
func (m readOnlyMerchants) Create(ctx context.Context, p *merchant.Profile) error {
	holder, err := m.IDByName(ctx, p.Name)
	if err == nil && holder != "" {
		return merchant.ErrNameTaken
	}
	return err
}

// Update checks that the stored profile has the version that was read.
func (m readOnlyMerchants) Update(ctx context.Context, p *merchant.Profile) error {
	stored, err := m.Profile(ctx, p.ID)
	switch {
	case err != nil:
		return err
	case stored == nil:
		return merchant.ErrNotFound
	case stored.Version != p.Version:
		return merchant.ErrVersionConflict
	}
	return nil
}

type readOnlyLedger struct{ Ledger }

// Replace accepts every entry: the caller has just read it.
func (readOnlyLedger) Replace(context.Context, *ledger.Entry) (*ledger.Entry, error) { return nil, nil }

type readOnlyHealth struct{ webhook.HealthStore }

// SaveHealth accepts every health: a real write that came too late is harmless.
func (readOnlyHealth) SaveHealth(context.Context, webhook.Health) (bool, error) { return true, nil }

// SaveDisabled checks that the stored health has the version that was read.
func (r readOnlyHealth) SaveDisabled(ctx context.Context, h webhook.Health) (bool, error) {
	stored, err := r.Health(ctx, h.Endpoint)
	return stored.DisabledVersion == h.DisabledVersion, err
}

type readOnlySecrets struct{ SecretStore }

// Put checks that the secret has not changed since it was read.
func (r readOnlySecrets) Put(ctx context.Context, current StoredSecret, _ []byte) error {
	stored, err := r.Get(ctx, current.Name)
	if err == nil && stored.Revision != current.Revision {
		err = secretChangedError(current.Name)
	}
	return err
}

type readOnlyAmounts struct{}

// Adjust accepts every adjustment.
func (readOnlyAmounts) Adjust(context.Context, dailyamount.Adjustment) (dailyamount.AdjustmentResult, error) {
	return dailyamount.AdjustmentResult{Applied: true}, nil
}
