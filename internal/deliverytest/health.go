package deliverytest

import (
	"context"
	"sync"

	"mobilegateway/shared/webhook"
)

// Health keeps endpoints' health in memory, and can be made to fail.
type Health struct {
	mutex   sync.Mutex
	stored  map[webhook.Endpoint]webhook.Health
	failure error
	reads   int
	writes  int
}

var _ webhook.HealthStore = (*Health)(nil)

// NewHealth makes an empty store.
func NewHealth() *Health { return &Health{stored: map[webhook.Endpoint]webhook.Health{}} }

// Health is webhook.HealthStore's.
func (h *Health) Health(_ context.Context, endpoint webhook.Endpoint) (webhook.Health, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.reads++
	if stored, found := h.stored[endpoint]; found {
		return stored, h.failure
	}
	return webhook.Health{Endpoint: endpoint}, h.failure
}

// SaveHealth is webhook.HealthStore's.
func (h *Health) SaveHealth(_ context.Context, next webhook.Health) (bool, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.writes++
	if h.failure != nil {
		return false, h.failure
	}
	if stored, found := h.stored[next.Endpoint]; found && stored.Version != next.Version {
		return false, nil
	}
	next.Version++
	h.stored[next.Endpoint] = next
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
	return h.stored[endpoint]
}

// Set stores a health as it is.
func (h *Health) Set(health webhook.Health) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.stored[health.Endpoint] = health
}
