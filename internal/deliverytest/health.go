package deliverytest

import (
	"context"
	"sync"

	"mobilegateway/shared/webhook"
)

// MemoryHealthStore is a webhook.HealthStore in memory whose calls can be made to fail. It is safe for concurrent use.
type MemoryHealthStore struct {
	mutex    sync.Mutex
	servers  map[webhook.Server]webhook.Health
	disabled map[webhook.Endpoint]webhook.Health
	err      error
	writes   int
}

var _ webhook.HealthStore = (*MemoryHealthStore)(nil)

// NewMemoryHealthStore returns an empty store.
func NewMemoryHealthStore() *MemoryHealthStore {
	return &MemoryHealthStore{
		servers: map[webhook.Server]webhook.Health{}, disabled: map[webhook.Endpoint]webhook.Health{},
	}
}

// Health implements webhook.HealthStore.
func (h *MemoryHealthStore) Health(_ context.Context, endpoint webhook.Endpoint) (webhook.Health, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.healthOf(endpoint), h.err
}

func (h *MemoryHealthStore) healthOf(endpoint webhook.Endpoint) webhook.Health {
	health, disabled := h.servers[endpoint.Server()], h.disabled[endpoint]
	health.Endpoint, health.DisabledVersion, health.DisabledAt = endpoint, disabled.DisabledVersion, disabled.DisabledAt
	if !health.Enabled() {
		health.LastReason, health.LastStatus = disabled.LastReason, disabled.LastStatus
		health.ChangedAt = disabled.ChangedAt
	}
	return health
}

// SaveHealth implements webhook.HealthStore.
func (h *MemoryHealthStore) SaveHealth(_ context.Context, next webhook.Health) (bool, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.writes++
	if h.err != nil || h.servers[next.Server()].Version != next.Version {
		return false, h.err
	}
	next.Version++
	h.servers[next.Server()] = next
	return true, nil
}

// SaveDisabled implements webhook.HealthStore.
func (h *MemoryHealthStore) SaveDisabled(_ context.Context, next webhook.Health) (bool, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.writes++
	if h.err != nil || h.disabled[next.Endpoint].DisabledVersion != next.DisabledVersion {
		return false, h.err
	}
	next.DisabledVersion++
	h.disabled[next.Endpoint] = next
	return true, nil
}

// SetError makes every call fail; nil ends that.
func (h *MemoryHealthStore) SetError(err error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.err = err
}

// Writes returns the number of attempted writes.
func (h *MemoryHealthStore) Writes() int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.writes
}

// Stored returns the stored health of an endpoint.
func (h *MemoryHealthStore) Stored(endpoint webhook.Endpoint) webhook.Health {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.healthOf(endpoint)
}

// StoreHealth stores the health of an endpoint's server and URL unconditionally.
func (h *MemoryHealthStore) StoreHealth(health webhook.Health) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.servers[health.Server()], h.disabled[health.Endpoint] = health, health
}
