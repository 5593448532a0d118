// Package limit keeps the requests of each merchant within the rate of its profile (decision "merchant-limits"). The
// merchant's daily amount is package dailyamount's.
//
// It decides with one small item for each merchant, so that no merchant waits for another's; package limit/dynamo
// keeps the items. It does not know HTTP. Its invariant: no more requests are admitted than the rate and the clock
// skew allow.
package limit

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// maxClockSkew is the assumed difference between the clocks of two functions. A stored time that is further ahead
	// is wrong and is overwritten, so that a clock that ran ahead does not lock a merchant out.
	maxClockSkew = 5 * time.Second
	// rateTimeout bounds the whole check, because the merchant waits for it.
	rateTimeout = time.Second
	// maxRateAttempts bounds the writes of one request. The first may assume another state than the item has, and
	// another request may come first.
	maxRateAttempts = 3
	// maxRememberedMerchants bounds the merchants that a process remembers.
	maxRememberedMerchants = 1024
	// rateRetention is how long an item without requests is kept.
	rateRetention = 24 * time.Hour
)

// ErrThrottled is returned by a RateStore whose table refuses further writes of one item: the limit of its partition.
var ErrThrottled = errors.New("limit: the table refuses further writes of this item for now")

// RateUpdate is one conditional write of the time at which a merchant's bucket is full again, in microseconds since
// 1970.
type RateUpdate struct {
	// Min and Max bound the stored time, both included. AllowAbsent also allows a missing item.
	Min, Max    int64
	AllowAbsent bool
	// Set is the new time. If it is 0, Add is added to the stored one.
	Set, Add int64
	// ExpireAt is the time after which the table may delete the item.
	ExpireAt time.Time
}

// RateStore keeps one time for each merchant.
type RateStore interface {
	// UpdateRate writes if the condition is true. stored is the time in the item afterwards, 0 for none, also if
	// nothing was written. ErrThrottled: the table refuses writes of this item. After any other error the item may be
	// written.
	UpdateRate(ctx context.Context, merchantID string, u RateUpdate) (stored int64, updated bool, err error)
}

// RateLimiter limits merchants' requests by a token bucket in its shortest form, the generic cell rate algorithm: the
// item has the time at which the bucket will be full again. It is safe for concurrent use.
type RateLimiter struct {
	store RateStore
	now   func() time.Time

	mutex      sync.Mutex
	lastFullAt map[string]int64 // by merchant, as this process saw it last
}

// NewRateLimiter creates a RateLimiter that remembers no merchant yet.
func NewRateLimiter(store RateStore, now func() time.Time) *RateLimiter {
	return &RateLimiter{store: store, now: now, lastFullAt: map[string]int64{}}
}

// Take takes one request out of a merchant's bucket of perSecond requests a second and burst requests at once. wait
// is how long the merchant must wait if the bucket is empty, else 0. After an error the request may or may not be
// taken.
//
// It costs one write, and a second one if another process has changed the item since this process last saw it. It costs
// none if this process knows that the bucket is empty.
func (r *RateLimiter) Take(
	ctx context.Context, merchantID string, perSecond, burst int,
) (wait time.Duration, err error) {
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
			return time.Second, nil // more requests than any limit allows
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

// nextUpdate returns the write for a bucket that will be full at a time (0: it is full), or how long to wait for one.
func (b bucket) nextUpdate(fullAt int64) (RateUpdate, time.Duration) {
	switch {
	case fullAt < b.now: // it is full: one interval is missing after the write
		return RateUpdate{Max: b.now - 1, AllowAbsent: true, Set: b.now + b.interval, ExpireAt: b.expireAt}, 0
	case fullAt <= b.now+b.tolerance:
		return RateUpdate{Min: b.now, Max: b.now + b.tolerance, Add: b.interval, ExpireAt: b.expireAt}, 0
	case fullAt > b.now+b.tolerance+b.interval+b.skew: // no request under this limit and a right clock wrote this
		return RateUpdate{Min: fullAt, Max: fullAt, Set: b.now + b.interval, ExpireAt: b.expireAt}, 0
	default:
		return RateUpdate{}, time.Duration(fullAt-b.tolerance-b.now) * time.Microsecond
	}
}

// knownFullAt returns the time that this process last saw of a merchant, 0 for none.
func (r *RateLimiter) knownFullAt(merchantID string) int64 {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.lastFullAt[merchantID]
}

// remember keeps a time that was seen. A forgotten one costs one more write.
func (r *RateLimiter) remember(merchantID string, fullAt int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.lastFullAt) >= maxRememberedMerchants {
		clear(r.lastFullAt)
	}
	r.lastFullAt[merchantID] = fullAt
}
