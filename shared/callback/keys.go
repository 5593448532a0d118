package callback

import (
	"context"
	"crypto/hmac"
	"time"

	"mobilegateway/shared/keyring"
	"mobilegateway/shared/secret"
)

// Keys reads the callback keys from their secret and refreshes them.
type Keys struct{ keys *keyring.RefreshingRing }

// New creates Keys over the secret CALLBACK_KEY_SECRET. A new key signs only after cacheLifetime, the lifetime of the
// secret's cache (decision "key-rings").
func New(source secret.Reader, cacheLifetime time.Duration, now func() time.Time) *Keys {
	return &Keys{keys: keyring.NewRefreshingRing(source, cacheLifetime, now)}
}

// Ring returns the ring to sign with. It fails if the secret could never be read.
func (k *Keys) Ring(ctx context.Context) (*Ring, error) {
	key, err := k.keys.SigningKey(ctx)
	if err != nil {
		return nil, err
	}
	return &Ring{signingKey: key}, nil
}

// Verify reports whether any key signed the token for the path, in constant time. It refreshes the secret for an
// unknown key number, at a limited rate. It reads no database. After an error the token may be valid: the operator
// should retry.
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
