package deliverytest

import (
	"context"
	"sync"

	"mobilegateway/shared/webhook"
)

// MemoryHealthStore keeps endpoints' health in memory, and can be made to fail.
type MemoryHealthStore struct {
	mutex    sync.Mutex
	servers  map[webhook.Server]webhook.Health
	disabled map[webhook.Endpoint]webhook.Health
	err      error
	reads    int
	writes   int
}

var _ webhook.HealthStore = (*MemoryHealthStore)(nil)

// NewMemoryHealthStore makes an empty store.
func NewMemoryHealthStore() *MemoryHealthStore {
	return &MemoryHealthStore{servers: map[webhook.Server]webhook.Health{}, disabled: map[webhook.Endpoint]webhook.Health{}}
}

// Health is webhook.HealthStore's.
func (h *MemoryHealthStore) Health(_ context.Context, endpoint webhook.Endpoint) (webhook.Health, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.reads++
	return h.healthOf(endpoint), h.err
}

func (h *MemoryHealthStore) healthOf(endpoint webhook.Endpoint) webhook.Health {
	health, disabled := h.servers[endpoint.Server()], h.disabled[endpoint]
	health.Endpoint, health.DisabledVersion, health.DisabledAt = endpoint, disabled.DisabledVersion, disabled.DisabledAt
	if !health.Enabled() {
		health.LastReason, health.LastStatus, health.ChangedAt = disabled.LastReason, disabled.LastStatus, disabled.ChangedAt
	}
	return health
}

// SaveHealth is webhook.HealthStore's.
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

// SaveDisabled is webhook.HealthStore's.
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
func (h *MemoryHealthStore) SetError(failure error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.err = failure
}

// Writes is how often a change was stored or tried to be.
func (h *MemoryHealthStore) Writes() int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.writes
}

// Stored is what is stored of an endpoint.
func (h *MemoryHealthStore) Stored(endpoint webhook.Endpoint) webhook.Health {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.healthOf(endpoint)
}

// StoreHealth stores a health as it is, of its server and of its URL.
func (h *MemoryHealthStore) StoreHealth(health webhook.Health) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.servers[health.Server()], h.disabled[health.Endpoint] = health, health
}
