package callback

import (
	"context"
	"crypto/hmac"
	"time"

	"mobilegateway/shared/keyring"
	"mobilegateway/shared/secret"
)

// Keys hands out the callback ring as its secret stands now.
type Keys struct {
	keys          *keyring.RefreshingRing
	cacheLifetime time.Duration
	now           func() time.Time
}

// New makes Keys over the secret CALLBACK_KEY_SECRET. life is the life of the secret's cache: a new key signs only
// after it (decision "key-rings").
func New(source secret.Reader, cacheLifetime time.Duration, now func() time.Time) *Keys {
	return &Keys{keys: keyring.NewRefreshingRing(source, cacheLifetime, now), cacheLifetime: cacheLifetime, now: now}
}

// Ring returns the ring to sign with. It fails when the secret could never be read.
func (k *Keys) Ring(ctx context.Context) (*Ring, error) {
	ring, err := k.keys.Current(ctx)
	if err != nil {
		return nil, err
	}
	return &Ring{ring: ring, signingKey: ring.SigningKey(k.now(), k.cacheLifetime)}, nil
}

// Verify is Ring.Verify, but asks the secret once, at a limited rate, about a key number that it does not know. It
// reads no database. An error means that nothing is known about the token: the operator should come again.
func (k *Keys) Verify(ctx context.Context, path, token string) (bool, error) {
	number, tag, ok := parseToken(token)
	if !ok {
		return false, nil
	}
	key, found, err := k.keys.FindKey(ctx, number)
	if err != nil || !found {
		return false, err
	}
	return hmac.Equal(tag, pathMAC(key, path)), nil
}
