package callback

import (
	"context"
	"crypto/hmac"
	"time"

	"mobilegateway/shared/keyring"
)

// Keys hands out the callback ring as its secret stands now.
type Keys struct {
	keys *keyring.Keys
	life time.Duration
	now  func() time.Time
}

// New makes Keys over the secret CALLBACK_KEY_SECRET. life is the life of the secret's cache: a new key signs only
// after it (decision "key-rings").
func New(source keyring.Source, life time.Duration, now func() time.Time) *Keys {
	return &Keys{keys: keyring.New(source, life, now), life: life, now: now}
}

// Ring returns the ring to sign with. It fails when the secret could never be read.
func (k *Keys) Ring(ctx context.Context) (*Ring, error) {
	ring, err := k.keys.Ring(ctx)
	if err != nil {
		return nil, err
	}
	return &Ring{ring: ring, signing: ring.Signing(k.now(), k.life)}, nil
}

// Verify is Ring.Verify, but asks the secret once, at a limited rate, about a key number that it does not know. It
// reads no database. An error means that nothing is known about the token: the operator should come again.
func (k *Keys) Verify(ctx context.Context, path, token string) (bool, error) {
	number, sum, ok := split(token)
	if !ok {
		return false, nil
	}
	key, found, err := k.keys.Find(ctx, number)
	if err != nil || !found {
		return false, err
	}
	return hmac.Equal(sum, mac(key, path)), nil
}
