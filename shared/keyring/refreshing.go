package keyring

import (
	"bytes"
	"context"
	"sync"
	"time"

	"mobilegateway/shared/secret"
)

// SecretSource is where a ring's secret comes from; *secret.Cache is one.
type SecretSource interface {
	// Get returns the secret, cached.
	Get(ctx context.Context) (secret.Value, error)
	// Refresh reads the secret anew, but not more often than its rate limit allows; then it is as Get.
	Refresh(ctx context.Context) (secret.Value, error)
}

// RefreshingRing is a ring that follows its secret. It is safe for parallel use.
type RefreshingRing struct {
	source          SecretSource
	propagationTime time.Duration
	now             func() time.Time

	mutex      sync.Mutex
	parsedText []byte // what ring was parsed from
	ring       *Ring
}

// NewRefreshingRing makes Keys over a secret. life is the time after which every running function has read a change of the
// secret, which is the life of the secret cache.
func NewRefreshingRing(source SecretSource, propagationTime time.Duration, now func() time.Time) *RefreshingRing {
	return &RefreshingRing{source: source, propagationTime: propagationTime, now: now}
}

// Current returns the ring as it is known now. It fails when the secret cannot be read and none was read before.
func (k *RefreshingRing) Current(ctx context.Context) (*Ring, error) {
	value, err := k.source.Get(ctx)
	if err != nil {
		return nil, err
	}
	return k.parseCached(value)
}

// SigningKey returns the key to sign with (see Ring.Signing).
func (k *RefreshingRing) SigningKey(ctx context.Context) (Key, error) {
	ring, err := k.Current(ctx)
	if err != nil {
		return Key{}, err
	}
	return ring.SigningKey(k.now(), k.propagationTime), nil
}

// FindKey returns the key with a number. An unknown number causes one refresh of the secret, which the source limits in
// rate, because a key may have been added a moment ago. An error means that nothing is known about the number.
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
	ring, err = k.parseCached(value)
	if err != nil {
		return Key{}, false, err
	}
	key, found := ring.FindKey(number)
	return key, found, nil
}

// parseCached returns the ring of a secret's value, parsed once. A value that does not parse leaves the last good ring in
// force: a slip of an editor must not stop the gateway.
func (k *RefreshingRing) parseCached(value secret.Value) (*Ring, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.ring != nil && bytes.Equal(k.parsedText, value.Bytes) {
		return k.ring, nil
	}
	ring, err := Parse(value.Bytes)
	if err != nil {
		if k.ring != nil {
			return k.ring, nil
		}
		return nil, err
	}
	k.parsedText = append([]byte(nil), value.Bytes...)
	k.ring = ring
	return ring, nil
}
