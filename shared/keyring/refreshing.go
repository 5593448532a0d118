package keyring

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

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
	return k.parseCached(value)
}

// SigningKey returns the key to sign with (see Ring.SigningKey).
func (k *RefreshingRing) SigningKey(ctx context.Context) (Key, error) {
	ring, err := k.Current(ctx)
	if err != nil {
		return Key{}, err
	}
	return ring.SigningKey(k.now(), k.propagationTime), nil
}

// ErrStaleRing means that a key number is unknown, and that the ring is old. The number may belong to a new key.
var ErrStaleRing = errors.New("the key ring could not be renewed")

// FindKey returns the key with a number. An unknown number may belong to a new key, so it causes one refresh of the
// secret, which the source limits in rate. After an error, such as ErrStaleRing, it is unknown whether the key exists.
func (k *RefreshingRing) FindKey(ctx context.Context, number int) (Key, bool, error) {
	ring, err := k.Current(ctx)
	if err != nil {
		return Key{}, false, err
	}
	if key, found := ring.FindKey(number); found {
		return key, true, nil
	}
	value, err := k.source.Refresh(ctx)
	if err != nil {
		return Key{}, false, err
	}
	if ring, err = k.parseCached(value); err != nil {
		return Key{}, false, err
	}
	key, found := ring.FindKey(number)
	if !found && k.stale() {
		return Key{}, false, ErrStaleRing
	}
	return key, found, nil
}

// stale reports whether a key may sign by now that the ring does not have: its text was not fetched, or was invalid,
// for propagationTime.
func (k *RefreshingRing) stale() bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.propagationTime > 0 && !k.validAt.IsZero() && k.now().Round(0).Sub(k.validAt) >= k.propagationTime
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
