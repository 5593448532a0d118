package storetest

import (
	"cmp"
	"context"
	"time"

	"mobilegateway/shared/webhook"
	"mobilegateway/shared/webhook/dynamo"
)

// EndpointHealth is the store of the health of merchants' endpoints. Any number of goroutines may use it.
type EndpointHealth struct {
	Faults
	store *dynamo.Store
	now   func() time.Time
}

var _ webhook.HealthStore = (*EndpointHealth)(nil)

// NewEndpointHealth makes an empty store without faults. now is the time at which health expires.
func NewEndpointHealth(now func() time.Time) *EndpointHealth {
	store := dynamo.New(newClient(), table, now)
	store.Start = func(read func()) { read() } // the model serves one read at a time
	return &EndpointHealth{store: store, now: now}
}

// Health implements webhook.HealthStore.
func (h *EndpointHealth) Health(ctx context.Context, endpoint webhook.Endpoint) (webhook.Health, error) {
	return run(ctx, &h.Faults, Call{Operation: ReadHealth}, func() (webhook.Health, error) {
		return h.store.Health(ctx, endpoint)
	})
}

// SaveHealth implements webhook.HealthStore.
func (h *EndpointHealth) SaveHealth(ctx context.Context, next webhook.Health) (bool, error) {
	return run(ctx, &h.Faults, Call{Operation: SaveHealth}, func() (bool, error) {
		return h.store.SaveHealth(ctx, next)
	})
}

// SaveDisabled implements webhook.HealthStore.
func (h *EndpointHealth) SaveDisabled(ctx context.Context, next webhook.Health) (bool, error) {
	return run(ctx, &h.Faults, Call{Operation: SaveDisabled}, func() (bool, error) {
		return h.store.SaveDisabled(ctx, next)
	})
}

// Stored returns the stored health of an endpoint. The call is not counted and has no fault.
func (h *EndpointHealth) Stored(endpoint webhook.Endpoint) webhook.Health {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	health, err := h.store.Health(context.Background(), endpoint)
	mustSucceed("read the health of an endpoint", err)
	return health
}

// StoreHealth stores the health of an endpoint's server and URL unconditionally, as the next versions. Its time is now,
// unless it has one.
func (h *EndpointHealth) StoreHealth(health webhook.Health) {
	stored := h.Stored(health.Endpoint)
	h.mutex.Lock()
	defer h.mutex.Unlock()
	health.Version, health.DisabledVersion = stored.Version, stored.DisabledVersion
	health.ChangedAt = cmp.Or(health.ChangedAt, h.now())
	_, serverErr := h.store.SaveHealth(context.Background(), health)
	_, urlErr := h.store.SaveDisabled(context.Background(), health)
	mustSucceed("store the health of an endpoint", cmp.Or(serverErr, urlErr))
}
