package keyring

import (
	"bytes"
	"context"
	"sync"
	"time"

	"mobilegateway/shared/secret"
)

// Source is where a ring's secret comes from; *secret.Cache is one.
type Source interface {
	// Get returns the secret, cached.
	Get(ctx context.Context) (secret.Value, error)
	// Refresh reads the secret anew, but not more often than its rate limit allows; then it is as Get.
	Refresh(ctx context.Context) (secret.Value, error)
}

// Keys is a ring that follows its secret. It is safe for parallel use.
type Keys struct {
	source Source
	life   time.Duration
	now    func() time.Time

	mutex sync.Mutex
	text  []byte // what ring was parsed from
	ring  *Ring
}

// New makes Keys over a secret. life is the time after which every running function has read a change of the
// secret, which is the life of the secret cache.
func New(source Source, life time.Duration, now func() time.Time) *Keys {
	return &Keys{source: source, life: life, now: now}
}

// Ring returns the ring as it is known now. It fails when the secret cannot be read and none was read before.
func (k *Keys) Ring(ctx context.Context) (*Ring, error) {
	value, err := k.source.Get(ctx)
	if err != nil {
		return nil, err
	}
	return k.parsed(value)
}

// Signing returns the key to sign with (see Ring.Signing).
func (k *Keys) Signing(ctx context.Context) (Key, error) {
	ring, err := k.Ring(ctx)
	if err != nil {
		return Key{}, err
	}
	return ring.Signing(k.now(), k.life), nil
}

// Find returns the key with a number. An unknown number causes one refresh of the secret, which the source limits in
// rate, because a key may have been added a moment ago. An error means that nothing is known about the number.
func (k *Keys) Find(ctx context.Context, number int) (Key, bool, error) {
	ring, err := k.Ring(ctx)
	if err != nil {
		return Key{}, false, err
	}
	if key, found := ring.Find(number); found {
		return key, true, nil
	}
	value, err := k.source.Refresh(ctx)
	if err != nil {
		return Key{}, false, err
	}
	ring, err = k.parsed(value)
	if err != nil {
		return Key{}, false, err
	}
	key, found := ring.Find(number)
	return key, found, nil
}

// parsed returns the ring of a secret's value, parsed once. A value that does not parse leaves the last good ring in
// force: a slip of an editor must not stop the gateway.
func (k *Keys) parsed(value secret.Value) (*Ring, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.ring != nil && bytes.Equal(k.text, value.Current) {
		return k.ring, nil
	}
	ring, err := Parse(value.Current)
	if err != nil {
		if k.ring != nil {
			return k.ring, nil
		}
		return nil, err
	}
	k.text = append([]byte(nil), value.Current...)
	k.ring = ring
	return ring, nil
}
