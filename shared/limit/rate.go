// Package limit keeps the requests of each merchant within the rate of its profile (decision "merchant-limits"), and
// those to each operator's account within that of its platform's row (decision "lookup-rate"). The merchant's daily
// amount is package dailyamount's.
//
// It decides with one small item for each merchant or account, so that none waits for another's; package limit/dynamo
// keeps the items. It does not know HTTP. Its invariant: no more requests are admitted than the rate and the clock
// skew allow.
package limit

import (
	"context"
	"errors"
	"sync"
	"time"

	"mobilegateway/shared/logsafe"
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
var ErrThrottled = logsafe.New("limit: the table refuses further writes of this item for now")

// RateUpdate is one conditional write of the time at which a bucket is full again, in microseconds since 1970.
type RateUpdate struct {
	// Min and Max bound the stored time, both included. AllowAbsent also allows a missing item.
	Min, Max    int64
	AllowAbsent bool
	// Set is the new time. If it is 0, Add is added to the stored one.
	Set, Add int64
	// ExpireAt is the time after which the table may delete the item.
	ExpireAt time.Time
}

// RateStore keeps one time for each merchant and account.
type RateStore interface {
	// UpdateRate writes if the condition is true. stored is the time in the item afterwards, 0 for none, also if
	// nothing was written. ErrThrottled: the table refuses writes of this item. After any other error the item may be
	// written.
	UpdateRate(ctx context.Context, merchantID string, u RateUpdate) (stored int64, updated bool, err error)
}

// RateLimiter limits the requests of merchants, and those to accounts, by a token bucket in its shortest form: the
// generic cell rate algorithm. The item has the time at which the bucket will be full again. It is safe for concurrent
// use.
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

// Rate is a bucket of PerSecond requests a second and Burst requests at once; both are at least 1.
type Rate struct{ PerSecond, Burst int }

// Take takes one request out of a merchant's bucket of perSecond requests a second and burst requests at once. wait
// is how long the merchant must wait if the bucket is empty, else 0. After an error the request may or may not be
// taken.
//
// It costs one write, and a second one if another process has changed the item since this process last saw it. It costs
// none if this process knows that the bucket is empty.
func (r *RateLimiter) Take(
	ctx context.Context, merchantID string, perSecond, burst int,
) (wait time.Duration, err error) {
	_, wait, err = r.TakeUpTo(ctx, merchantID, Rate{perSecond, burst}, 1)
	return wait, err
}

// TakeUpTo takes as many requests as the bucket of key has, at most most, at the cost of one Take. If it has none,
// taken is 0 and wait is the time until it has one. After an error the requests may or may not be taken.
func (r *RateLimiter) TakeUpTo(
	ctx context.Context, key string, rate Rate, most int,
) (taken int, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, rateTimeout)
	defer cancel()
	now := r.now()
	b := bucket{
		now: now.UnixMicro(), interval: time.Second.Microseconds() / int64(rate.PerSecond),
		skew: maxClockSkew.Microseconds(), most: int64(min(most, rate.Burst)), expireAt: now.Add(rateRetention),
	}
	b.tolerance = int64(rate.Burst-1) * b.interval
	fullAt := r.knownFullAt(key)
	for range maxRateAttempts {
		update, count, wait := b.nextUpdate(fullAt)
		if count == 0 {
			return 0, wait, nil
		}
		var updated bool
		fullAt, updated, err = r.store.UpdateRate(ctx, key, update)
		if errors.Is(err, ErrThrottled) {
			return 0, time.Second, nil // more requests than any limit allows
		}
		if err != nil {
			return 0, 0, err
		}
		r.remember(key, fullAt)
		if updated {
			return int(count), 0, nil
		}
	}
	return 0, time.Duration(b.interval) * time.Microsecond, nil // other requests came first every time
}

// bucket is a limit at a moment, the times in microseconds. most is the number of requests to take, at most the burst.
type bucket struct {
	now, interval, tolerance, skew, most int64
	expireAt                             time.Time
}

// nextUpdate returns the write for a bucket that will be full at a time (0: it is full) and the number of requests that
// it takes. If it has none, it returns how long to wait for one.
func (b bucket) nextUpdate(fullAt int64) (update RateUpdate, count int64, wait time.Duration) {
	latest := b.now + b.tolerance // the last time of a bucket that has a request
	switch {
	case fullAt < b.now: // it is full: the requests are missing after the write
		full := RateUpdate{Max: b.now - 1, AllowAbsent: true, Set: b.now + b.most*b.interval, ExpireAt: b.expireAt}
		return full, b.most, 0
	case fullAt <= latest:
		count = min(b.most, (latest-fullAt)/b.interval+1)
		last := latest - (count-1)*b.interval
		return RateUpdate{Min: b.now, Max: last, Add: count * b.interval, ExpireAt: b.expireAt}, count, 0
	case fullAt > latest+b.interval+b.skew: // no request under this limit and a right clock wrote this
		wrong := RateUpdate{Min: fullAt, Max: fullAt, Set: b.now + b.most*b.interval, ExpireAt: b.expireAt}
		return wrong, b.most, 0
	default:
		return RateUpdate{}, 0, time.Duration(fullAt-latest) * time.Microsecond
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
