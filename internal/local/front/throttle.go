package front

import (
	"sync"
	"time"

	"mobilegateway/internal/template"
)

// bucket is the stage's token bucket: as many tokens as the burst, refilled at the rate.
type bucket struct {
	limit template.Throttle

	mu     sync.Mutex
	tokens float64
	at     time.Time
}

func newBucket(limit template.Throttle, now time.Time) *bucket {
	return &bucket{limit: limit, tokens: float64(limit.Burst), at: now}
}

// take takes a token; false where there is none. A limit of zero is no limit.
func (b *bucket) take(now time.Time) bool {
	if b.limit.Rate == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(float64(b.limit.Burst), b.tokens+now.Sub(b.at).Seconds()*b.limit.Rate)
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
