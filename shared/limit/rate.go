// Package limit holds a merchant to the limits of its profile: so many requests a second, and so much money a day
// (decision "merchant-limits").
//
// It decides with small items of its own, one a merchant and limit, so that no merchant ever waits for another's; package
// limit/dynamo keeps them. It knows nothing of requests and answers. Its invariant: what a day has counted is never less
// than what operators may have applied of it.
package limit

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// maxClockSkew is how far the functions' clocks are believed to differ. A stored time that is further ahead than this cannot
	// be right: it is set anew, so that a clock that ran ahead shuts a merchant out for no longer.
	maxClockSkew = 5 * time.Second
	// rateTimeout bounds the question whether a request may come in: the merchant waits for it.
	rateTimeout = time.Second
	// maxRateAttempts is how often a request tries its write: the first may be made for another state of the item than it has,
	// and another request may come between.
	maxRateAttempts = 3
	// maxRememberedMerchants bounds the merchants whose time a process remembers.
	maxRememberedMerchants = 1024
	// rateRetention is how long an item without requests is kept.
	rateRetention = 24 * time.Hour
)

// ErrThrottled says that the table takes no more writes of an item for now: its partition's own limit.
var ErrThrottled = errors.New("limit: the table takes no more writes of this item")

// RateUpdate is one conditional write of the time up to which a merchant's requests are paid for, in microseconds since 1970.
type RateUpdate struct {
	// Min and Most are what the stored time may be, both included; Absent allows that there is none.
	Min, Max    int64
	AllowAbsent bool
	// Set is the new time; where it is 0, Add is added to the stored one.
	Set, Add int64
	// ExpireAt is when the table may drop the item.
	ExpireAt time.Time
}

// RateStore keeps one time for each merchant.
type RateStore interface {
	// UpdateRate makes the write where its condition holds. stored is the time that stands there afterwards, 0 for none, whether
	// or not it moved. ErrThrottled: the table refuses this item's writes; any other error: nothing is known.
	UpdateRate(ctx context.Context, merchantID string, m RateUpdate) (stored int64, updated bool, err error)
}

// RateLimiter limits merchants' requests by a token bucket in its shortest form, the generic cell rate algorithm: the item holds
// the time at which the bucket will be full again. It is safe for parallel use.
type RateLimiter struct {
	store RateStore
	now   func() time.Time

	mutex      sync.Mutex
	lastFullAt map[string]int64
}

// NewRateLimiter makes a Rate.
func NewRateLimiter(store RateStore, now func() time.Time) *RateLimiter {
	return &RateLimiter{store: store, now: now, lastFullAt: map[string]int64{}}
}

// Take takes one request of a merchant out of its bucket, of perSecond requests a second and burst at once. wait is how
// long the merchant has to wait where the bucket is empty, 0 for none. An error means that nothing is known. It costs one
// write; a second one where another process has changed the item's state since this one last saw it; none where this
// process knows already that the bucket is empty.
func (r *RateLimiter) Take(ctx context.Context, merchantID string, perSecond, burst int) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, rateTimeout)
	defer cancel()
	now := r.now()
	b := bucket{
		now: now.UnixMicro(), interval: time.Second.Microseconds() / int64(perSecond),
		skew: maxClockSkew.Microseconds(), expireAt: now.Add(rateRetention),
	}
	b.tolerance = int64(burst-1) * b.interval
	fullAt := r.knownFullAt(merchantID)
	for range maxRateAttempts {
		update, wait := b.nextUpdate(fullAt)
		if wait > 0 {
			return wait, nil
		}
		var updated bool
		fullAt, updated, err = r.store.UpdateRate(ctx, merchantID, update)
		if errors.Is(err, ErrThrottled) {
			return time.Second, nil // more came than any limit allows
		}
		if err != nil {
			return 0, err
		}
		r.remember(merchantID, fullAt)
		if updated {
			return 0, nil
		}
	}
	return time.Duration(b.interval) * time.Microsecond, nil // other requests came first every time
}

// bucket is a limit at a moment, all in microseconds.
type bucket struct {
	now, interval, tolerance, skew int64
	expireAt                       time.Time
}

// nextUpdate is the write for a bucket that will be full at a time (0: it is full), or how long to wait for one.
func (b bucket) nextUpdate(fullAt int64) (RateUpdate, time.Duration) {
	switch {
	case fullAt < b.now: // it is full: one interval is missing then
		return RateUpdate{Max: b.now - 1, AllowAbsent: true, Set: b.now + b.interval, ExpireAt: b.expireAt}, 0
	case fullAt <= b.now+b.tolerance:
		return RateUpdate{Min: b.now, Max: b.now + b.tolerance, Add: b.interval, ExpireAt: b.expireAt}, 0
	case fullAt > b.now+b.tolerance+b.interval+b.skew: // no request of ours by a right clock set this
		return RateUpdate{Min: fullAt, Max: fullAt, Set: b.now + b.interval, ExpireAt: b.expireAt}, 0
	default:
		return RateUpdate{}, time.Duration(fullAt-b.tolerance-b.now) * time.Microsecond
	}
}

// knownFullAt is the time that this process last saw of a merchant, 0 for none.
func (r *RateLimiter) knownFullAt(merchantID string) int64 {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.lastFullAt[merchantID]
}

// remember keeps what was seen. What is forgotten costs one write more.
func (r *RateLimiter) remember(merchantID string, fullAt int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.lastFullAt) >= maxRememberedMerchants {
		clear(r.lastFullAt)
	}
	r.lastFullAt[merchantID] = fullAt
}
