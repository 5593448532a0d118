package apigateway

import (
	"sync"
	"time"

	"mobilegateway/internal/template"
)

// tokenBucket is the stage's rate limit: it has at most Burst tokens and is refilled at the rate. It is safe for
// concurrent use.
type tokenBucket struct {
	limit template.Throttle

	mu         sync.Mutex
	tokens     float64
	refilledAt time.Time
}

func newTokenBucket(limit template.Throttle, now time.Time) *tokenBucket {
	return &tokenBucket{limit: limit, tokens: float64(limit.Burst), refilledAt: now}
}

// take takes a token and reports whether there was one. A rate of zero means no limit.
func (b *tokenBucket) take(now time.Time) bool {
	if b.limit.RequestsPerSecond == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(float64(b.limit.Burst), b.tokens+now.Sub(b.refilledAt).Seconds()*b.limit.RequestsPerSecond)
	b.refilledAt = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
