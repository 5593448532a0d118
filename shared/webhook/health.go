package webhook

import (
	"context"
	"time"
)

const (
	// failuresToClose is how many failures in a row close an endpoint's fast path.
	failuresToClose = 5
	// slowAfter is how long an attempt may last before its endpoint counts as slow: the fast path waits for each answer,
	// and a slow server would hold up what comes behind it.
	slowAfter = 3 * time.Second
)

// Endpoint names where a merchant is told: the merchant and the exact URL.
type Endpoint struct {
	MerchantID string
	URL        string
}

// Health is what is remembered of an endpoint. The zero value, and an endpoint that is not stored, is a healthy one.
type Health struct {
	Endpoint
	// Version counts stored changes from 1; 0 for one that is not stored.
	Version int64
	// Failures is the number of failed attempts in a row.
	Failures int
	// LastWhy and LastStatus are those of the last failed attempt.
	LastWhy    string
	LastStatus int
	ChangedAt  time.Time
	// Slow is true where the last attempt took longer than slowAfter, however it ended.
	Slow bool
	// DisabledAt is when the endpoint was disabled, by a 410 or by a person; zero while it is enabled.
	DisabledAt time.Time
}

// FastPath tells whether a notification may be posted at once, rather than by the sweep alone.
func (h Health) FastPath() bool { return h.Failures < failuresToClose && !h.Slow && h.Enabled() }

// Enabled tells whether notifications may be posted at all. Those of a disabled endpoint are parked.
func (h Health) Enabled() bool { return h.DisabledAt.IsZero() }

// After is the health after an attempt; changed is false where there is nothing to store: a success of a healthy
// endpoint, or one more failure of one whose fast path is closed already. So health costs no write while all goes well,
// and few while it does not.
func (h Health) After(result Result, now time.Time) (next Health, changed bool) {
	next = h
	next.ChangedAt, next.Slow = now, result.Took > slowAfter
	switch {
	case result.Outcome == Delivered:
		next.Failures, next.LastWhy, next.LastStatus = 0, "", 0
		return next, h.Failures > 0 || next.Slow != h.Slow
	case result.Outcome == Gone:
		next.Failures, next.LastWhy, next.LastStatus = h.Failures+1, result.Why, result.Status
		if h.Enabled() {
			next.DisabledAt = now
		}
		return next, h.Enabled()
	}
	next.Failures, next.LastWhy, next.LastStatus = h.Failures+1, result.Why, result.Status
	return next, h.Failures < failuresToClose || next.Slow != h.Slow
}

// Enable is the health after a person enabled the endpoint again: as new, but for its fast path's count.
func (h Health) Enable(now time.Time) Health {
	return Health{Endpoint: h.Endpoint, Version: h.Version, ChangedAt: now}
}

// HealthStore keeps Health, one item an endpoint.
type HealthStore interface {
	// Health reads what is known of an endpoint; a healthy zero value where nothing is.
	Health(ctx context.Context, endpoint Endpoint) (Health, error)
	// SaveHealth stores h where the stored one still has h.Version, as h.Version+1. saved is false when another hand was
	// faster: the count is then one too low, which does no harm.
	SaveHealth(ctx context.Context, h Health) (saved bool, err error)
}
