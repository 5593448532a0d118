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
	// maxSkew is how far the functions' clocks are believed to differ. A stored time that is further ahead than this cannot
	// be right: it is set anew, so that a clock that ran ahead shuts a merchant out for no longer.
	maxSkew = 5 * time.Second
	// rateTimeout bounds the question whether a request may come in: the merchant waits for it.
	rateTimeout = time.Second
	// rateTries is how often a request tries its write: the first may be made for another state of the item than it has,
	// and another request may come between.
	rateTries = 3
	// maxSeen bounds the merchants whose time a process remembers.
	maxSeen = 1024
	// rateLife is how long an item without requests is kept.
	rateLife = 24 * time.Hour
)

// ErrBusy says that the table takes no more writes of an item for now: its partition's own limit.
var ErrBusy = errors.New("limit: the table takes no more writes of this item")

// Move is one conditional write of the time up to which a merchant's requests are paid for, in microseconds since 1970.
type Move struct {
	// Least and Most are what the stored time may be, both included; Absent allows that there is none.
	Least, Most int64
	Absent      bool
	// Set is the new time; where it is 0, Add is added to the stored one.
	Set, Add int64
	// ExpireAt is when the table may drop the item.
	ExpireAt time.Time
}

// RateStore keeps one time for each merchant.
type RateStore interface {
	// Move makes the write where its condition holds. stored is the time that stands there afterwards, 0 for none, whether
	// or not it moved. ErrBusy: the table refuses this item's writes; any other error: nothing is known.
	Move(ctx context.Context, merchantID string, m Move) (stored int64, moved bool, err error)
}

// Rate limits merchants' requests by a token bucket in its shortest form, the generic cell rate algorithm: the item holds
// the time at which the bucket will be full again. It is safe for parallel use.
type Rate struct {
	store RateStore
	now   func() time.Time

	mutex sync.Mutex
	seen  map[string]int64
}

// NewRate makes a Rate.
func NewRate(store RateStore, now func() time.Time) *Rate {
	return &Rate{store: store, now: now, seen: map[string]int64{}}
}

// Take takes one request of a merchant out of its bucket, of perSecond requests a second and burst at once. wait is how
// long the merchant has to wait where the bucket is empty, 0 for none. An error means that nothing is known. It costs one
// write; a second one where another process has changed the item's state since this one last saw it; none where this
// process knows already that the bucket is empty.
func (r *Rate) Take(ctx context.Context, merchantID string, perSecond, burst int) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, rateTimeout)
	defer cancel()
	now := r.now()
	b := bucket{
		now: now.UnixMicro(), interval: time.Second.Microseconds() / int64(perSecond),
		skew: maxSkew.Microseconds(), expireAt: now.Add(rateLife),
	}
	b.tolerance = int64(burst-1) * b.interval
	full := r.last(merchantID)
	for range rateTries {
		move, wait := b.next(full)
		if wait > 0 {
			return wait, nil
		}
		var moved bool
		full, moved, err = r.store.Move(ctx, merchantID, move)
		if errors.Is(err, ErrBusy) {
			return time.Second, nil // more came than any limit allows
		}
		if err != nil {
			return 0, err
		}
		r.remember(merchantID, full)
		if moved {
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

// next is the write for a bucket that will be full at a time (0: it is full), or how long to wait for one.
func (b bucket) next(full int64) (Move, time.Duration) {
	switch {
	case full < b.now: // it is full: one interval is missing then
		return Move{Most: b.now - 1, Absent: true, Set: b.now + b.interval, ExpireAt: b.expireAt}, 0
	case full <= b.now+b.tolerance:
		return Move{Least: b.now, Most: b.now + b.tolerance, Add: b.interval, ExpireAt: b.expireAt}, 0
	case full > b.now+b.tolerance+b.interval+b.skew: // no request of ours by a right clock set this
		return Move{Least: full, Most: full, Set: b.now + b.interval, ExpireAt: b.expireAt}, 0
	default:
		return Move{}, time.Duration(full-b.tolerance-b.now) * time.Microsecond
	}
}

// last is the time that this process last saw of a merchant, 0 for none.
func (r *Rate) last(merchantID string) int64 {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.seen[merchantID]
}

// remember keeps what was seen. What is forgotten costs one write more.
func (r *Rate) remember(merchantID string, full int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.seen) >= maxSeen {
		clear(r.seen)
	}
	r.seen[merchantID] = full
}
