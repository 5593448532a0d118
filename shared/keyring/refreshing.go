package keyring

import (
	"bytes"
	"context"
	"sync"
	"time"

	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/secret"
)

// RefreshingRing is a ring that follows the changes of its secret. It is safe for concurrent use.
type RefreshingRing struct {
	source          secret.Reader
	propagationTime time.Duration
	now             func() time.Time

	mutex      sync.Mutex
	parsedText []byte // ring was parsed from it
	ring       *Ring
	validAt    time.Time // when the ring's text was fetched last; zero if the source does not report it
	staleUses  int       // since TakeStaleUses
}

// NewRefreshingRing makes a ring over a secret. After propagationTime every running function has read a change of the
// secret; it is the TTL of the secret cache.
func NewRefreshingRing(source secret.Reader, propagationTime time.Duration, now func() time.Time) *RefreshingRing {
	return &RefreshingRing{source: source, propagationTime: propagationTime, now: now}
}

// Current returns the current ring. It fails if the secret cannot be read and was never read before.
func (k *RefreshingRing) Current(ctx context.Context) (*Ring, error) {
	value, err := k.source.Get(ctx)
	if err != nil {
		return nil, err
	}
	ring, err := k.parseCached(value)
	if k.stale() {
		k.mutex.Lock()
		defer k.mutex.Unlock()
		k.staleUses++
	}
	return ring, err
}

// TakeStaleUses returns how often the ring was used since the last call while it could not be renewed.
func (k *RefreshingRing) TakeStaleUses() int {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	uses := k.staleUses
	k.staleUses = 0
	return uses
}

// SigningKey returns the key to sign with (see Ring.SigningKey). It returns ErrNoSigningKey while each live key is
// younger than SigningDelay, which follows a revocation. The first key of a ring signs at once.
func (k *RefreshingRing) SigningKey(ctx context.Context) (Key, error) {
	ring, err := k.Current(ctx)
	if err != nil {
		return Key{}, err
	}
	key := ring.SigningKey(k.now(), k.propagationTime)
	if !ring.isFirst(key) && ring.SignsFrom(key, k.propagationTime).After(k.now()) {
		return Key{}, ErrNoSigningKey
	}
	return key, nil
}

var (
	// ErrStaleRing means that the ring could not be renewed for SigningDelay: it may lack a key or a revocation.
	ErrStaleRing = logsafe.New("the key ring could not be renewed")
	// ErrNoSigningKey means that no live key is old enough to sign.
	ErrNoSigningKey = logsafe.New("no key of the ring may sign yet")
)

const (
	// RenewalInterval is the longest time for which the functions use a ring without reading its secret again. A
	// revoked key is refused after it.
	RenewalInterval = 30 * time.Second
	// SigningDelay is the shortest time from the storing of a key to its first signature. It is also the age from which
	// a ring counts as not renewed: one renewal failed. So a ring that was renewed in time has every key that signs.
	SigningDelay = 2 * RenewalInterval
)

// FindKey returns the live key with a number. Numbers are issued in order, so a lower number than the ring's last one
// is certainly revoked or retired. A higher one causes a refresh of the secret, which the source limits in rate for all
// numbers together. If the renewed ring lacks it, nothing valid can be signed with it. After an error, such as
// ErrStaleRing, it is unknown whether the key exists.
func (k *RefreshingRing) FindKey(ctx context.Context, number int) (Key, bool, error) {
	ring, err := k.Current(ctx)
	if err != nil {
		return Key{}, false, err
	}
	if key, found := ring.FindKey(number); found || number <= ring.lastNumber() {
		return key, found, nil
	}
	value, err := k.source.Refresh(ctx)
	if err != nil {
		return Key{}, false, err
	}
	if ring, err = k.parseCached(value); err != nil {
		return Key{}, false, err
	}
	key, found := ring.FindKey(number)
	if !found && k.mayLack(number, ring.lastNumber()) {
		return Key{}, false, ErrStaleRing
	}
	return key, found, nil
}

// mayLack reports whether a number above the last known one can belong to a key that signs.
func (k *RefreshingRing) mayLack(number, last int) bool { return number > last && k.stale() }

// CheckFresh returns ErrStaleRing if the ring could not be renewed in time.
func (k *RefreshingRing) CheckFresh() error {
	if k.stale() {
		return ErrStaleRing
	}
	return nil
}

// stale reports whether the ring's valid text was fetched too long ago. It is false if the source reports no time.
func (k *RefreshingRing) stale() bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return !k.validAt.IsZero() && k.now().Round(0).Sub(k.validAt) >= SigningDelay
}

// parseCached returns the ring of a secret's value, parsed once. An invalid value leaves the last valid ring in use: a
// mistake of an editor must not stop the gateway.
func (k *RefreshingRing) parseCached(value []byte) (*Ring, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.ring != nil && bytes.Equal(k.parsedText, value) {
		k.validAt = k.source.FetchedAt()
		return k.ring, nil
	}
	ring, err := Parse(value)
	if err != nil {
		if k.ring != nil {
			return k.ring, nil
		}
		return nil, err
	}
	k.parsedText, k.ring, k.validAt = bytes.Clone(value), ring, k.source.FetchedAt()
	return ring, nil
}
