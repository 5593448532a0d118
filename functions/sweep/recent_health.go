package sweep

import (
	"context"
	"sync"
	"time"

	"mobilegateway/shared/webhook"
)

const (
	// healthAge is how long a pass uses the health of an endpoint that it has read. Attempts in progress take longer,
	// so a server that fails gets more of those.
	healthAge = time.Second
	// maxRecentHealths bounds the endpoints whose health a pass keeps.
	maxRecentHealths = 10_000
)

// recentHealth is a store of health that keeps what it has read for a moment. Many due notifications of a merchant go
// to one server, and each would read its health. A save of the pass forgets it. It is safe for concurrent use.
type recentHealth struct {
	webhook.HealthStore
	now func() time.Time

	mutex sync.Mutex
	read  map[webhook.Endpoint]readHealth
}

type readHealth struct {
	webhook.Health
	at time.Time // before the read
}

// Health implements webhook.HealthStore.
func (r *recentHealth) Health(ctx context.Context, endpoint webhook.Endpoint) (webhook.Health, error) {
	now := r.now()
	r.mutex.Lock()
	recent, found := r.read[endpoint]
	r.mutex.Unlock()
	if age := now.Sub(recent.at); found && age >= 0 && age < healthAge {
		return recent.Health, nil
	}
	health, err := r.HealthStore.Health(ctx, endpoint)
	if err == nil {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if r.read == nil || len(r.read) >= maxRecentHealths {
			r.read = map[webhook.Endpoint]readHealth{}
		}
		r.read[endpoint] = readHealth{health, now}
	}
	return health, err
}

// SaveHealth implements webhook.HealthStore.
func (r *recentHealth) SaveHealth(ctx context.Context, h webhook.Health) (bool, error) {
	saved, err := r.HealthStore.SaveHealth(ctx, h)
	r.forgetAll() // the server has other URLs
	return saved, err
}

// SaveDisabled implements webhook.HealthStore.
func (r *recentHealth) SaveDisabled(ctx context.Context, h webhook.Health) (bool, error) {
	saved, err := r.HealthStore.SaveDisabled(ctx, h)
	r.forgetAll()
	return saved, err
}

func (r *recentHealth) forgetAll() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.read = nil
}
