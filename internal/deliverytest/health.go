package deliverytest

import (
	"context"
	"sync"

	"mobilegateway/shared/webhook"
)

// Health keeps endpoints' health in memory, and can be made to fail.
type Health struct {
	mutex    sync.Mutex
	servers  map[webhook.Server]webhook.Health
	disabled map[webhook.Endpoint]webhook.Health
	failure  error
	reads    int
	writes   int
}

var _ webhook.HealthStore = (*Health)(nil)

// NewHealth makes an empty store.
func NewHealth() *Health {
	return &Health{servers: map[webhook.Server]webhook.Health{}, disabled: map[webhook.Endpoint]webhook.Health{}}
}

// Health is webhook.HealthStore's.
func (h *Health) Health(_ context.Context, endpoint webhook.Endpoint) (webhook.Health, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.reads++
	return h.of(endpoint), h.failure
}

func (h *Health) of(endpoint webhook.Endpoint) webhook.Health {
	health, disabled := h.servers[endpoint.Server()], h.disabled[endpoint]
	health.Endpoint, health.DisabledVersion, health.DisabledAt = endpoint, disabled.DisabledVersion, disabled.DisabledAt
	if !health.Enabled() {
		health.LastWhy, health.LastStatus, health.ChangedAt = disabled.LastWhy, disabled.LastStatus, disabled.ChangedAt
	}
	return health
}

// SaveHealth is webhook.HealthStore's.
func (h *Health) SaveHealth(_ context.Context, next webhook.Health) (bool, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.writes++
	if h.failure != nil || h.servers[next.Server()].Version != next.Version {
		return false, h.failure
	}
	next.Version++
	h.servers[next.Server()] = next
	return true, nil
}

// SaveDisabled is webhook.HealthStore's.
func (h *Health) SaveDisabled(_ context.Context, next webhook.Health) (bool, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.writes++
	if h.failure != nil || h.disabled[next.Endpoint].DisabledVersion != next.DisabledVersion {
		return false, h.failure
	}
	next.DisabledVersion++
	h.disabled[next.Endpoint] = next
	return true, nil
}

// Fail makes every call fail; nil ends that.
func (h *Health) Fail(failure error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.failure = failure
}

// Writes is how often a change was stored or tried to be.
func (h *Health) Writes() int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.writes
}

// Of is what is stored of an endpoint.
func (h *Health) Of(endpoint webhook.Endpoint) webhook.Health {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.of(endpoint)
}

// Set stores a health as it is, of its server and of its URL.
func (h *Health) Set(health webhook.Health) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.servers[health.Server()], h.disabled[health.Endpoint] = health, health
}
