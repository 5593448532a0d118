package storetest

import (
	"context"

	"mobilegateway/shared/merchant"
	"mobilegateway/shared/merchant/dynamo"
)

// Merchants is the registry of merchants. Any number of goroutines may use it.
type Merchants struct {
	Faults
	registry *dynamo.Registry
}

var _ merchant.Registry = (*Merchants)(nil)

// NewMerchants makes an empty registry without faults.
func NewMerchants() *Merchants {
	return &Merchants{registry: dynamo.NewRegistry(newClient(), table)}
}

// Profile implements merchant.Store.
func (m *Merchants) Profile(ctx context.Context, id string) (*merchant.Profile, error) {
	return run(ctx, &m.Faults, Call{Operation: ReadProfile}, func() (*merchant.Profile, error) {
		return m.registry.Profile(ctx, id)
	})
}

// Create implements merchant.Registry.
func (m *Merchants) Create(ctx context.Context, p *merchant.Profile) error {
	return runError(ctx, &m.Faults, Call{Operation: CreateProfile}, func() error { return m.registry.Create(ctx, p) })
}

// Update implements merchant.Registry.
func (m *Merchants) Update(ctx context.Context, p *merchant.Profile) error {
	return runError(ctx, &m.Faults, Call{Operation: UpdateProfile}, func() error { return m.registry.Update(ctx, p) })
}

// IDByName implements merchant.Registry.
func (m *Merchants) IDByName(ctx context.Context, name string) (string, error) {
	return run(ctx, &m.Faults, Call{Operation: ListProfiles}, func() (string, error) {
		return m.registry.IDByName(ctx, name)
	})
}

// IDs implements merchant.Registry.
func (m *Merchants) IDs(ctx context.Context) ([]string, error) {
	return run(ctx, &m.Faults, Call{Operation: ListProfiles}, func() ([]string, error) { return m.registry.IDs(ctx) })
}
